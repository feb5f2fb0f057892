"""Time an imported model against the program it came from: a `MarianMTModel` of the shape of OPUS-MT, random weights.

    python benchmarks/imported.py

Both decode the same sources of 20 tokens into 25 tokens each with a beam of 4, one sentence and 16 at a time, in
alternation; the best of the rounds counts. It prints rows for docs/measured/decoding-speed.md, and how many of 16
translations are equal token for token in float32. Takes two to four minutes. Needs the extra export.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from transformers import MarianConfig, MarianMTModel

from allyouneed.apps.convert.foreign_model import StoredWeights, build_imported_model
from allyouneed.apps.convert.huggingface import LOGITS_BIAS, MARIAN
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.decode import SearchLimits, search
from allyouneed.nn import Transformer
from allyouneed.translator.engine import Engine, make_engine

VOCABULARY, WIDTH, LENGTH, TOKENS, BEAM = 58_101, 512, 20, 25, 4
PAD, EOS = VOCABULARY - 1, 0


def make_marian(layers: int) -> MarianMTModel:
    """Make a model of the shape of OPUS-MT with random weights."""
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=VOCABULARY, d_model=WIDTH, encoder_layers=layers, decoder_layers=layers, encoder_ffn_dim=4 * WIDTH,
        decoder_ffn_dim=4 * WIDTH, encoder_attention_heads=8, decoder_attention_heads=8, max_position_embeddings=512,
        activation_function="swish", scale_embedding=True, pad_token_id=PAD, decoder_start_token_id=PAD,
        eos_token_id=EOS, bos_token_id=EOS, forced_eos_token_id=None, init_std=0.05,
    )  # fmt: skip
    return MarianMTModel(config).eval()


def import_model(origin: MarianMTModel, layers: int) -> Transformer:
    """Make our model of it, in the way that `allyouneed import` does."""
    config = ModelConfig(
        vocab_size=VOCABULARY, pad_id=PAD, d_model=WIDTH, d_ff=4 * WIDTH, heads=8, encoder_layers=layers,
        decoder_layers=layers, activation="silu", projection_bias=True, max_length=512,
    )  # fmt: skip
    stored = {name: tensor for name, tensor in origin.state_dict().items() if "embed_positions" not in name}
    stored[LOGITS_BIAS] = stored[LOGITS_BIAS].squeeze(0)
    return build_imported_model(StoredWeights(stored, MARIAN), config)


def decode(engine: Engine, source: torch.Tensor) -> list[list[int]]:
    """Translate with our model, exactly `TOKENS` tokens each."""
    settings = DecodeConfig(beam=BEAM, alpha=1.0, length_penalty="plain", early_stopping="beam")
    step = engine.start(source.tolist(), banned_ids=(PAD, EOS), renormalize=False)
    limits = SearchLimits(sos_id=PAD, eos_id=EOS, max_lengths=[TOKENS] * len(source))
    return [best.ids for best, *_ in search(step, settings, limits)]


@torch.inference_mode()
def generate(model: MarianMTModel, source: torch.Tensor) -> list[list[int]]:
    """Translate with `generate`."""
    ids = model.generate(
        source, num_beams=BEAM, length_penalty=1.0, min_new_tokens=TOKENS, max_new_tokens=TOKENS, bad_words_ids=[[PAD]]
    )
    return [row[1:] for row in ids.tolist()]


def time_once(work: Callable[[], object], seconds: list[float]) -> None:
    begin = time.perf_counter()
    work()
    seconds.append(time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is timed; the best counts")
    parser.add_argument("--layers", type=int, default=6, help="layers on either side")
    args = parser.parse_args()
    origin = make_marian(args.layers)
    model = import_model(origin, args.layers)
    engines = {precision: make_engine([model], precision) for precision in ("float32", "int8")}
    generator = torch.Generator().manual_seed(1)
    sources = torch.randint(2, PAD, (16, LENGTH), generator=generator)
    sources[:, -1] = EOS
    pairs = zip(generate(origin, sources), decode(engines["float32"], sources), strict=True)
    print(f"equal in float32: {sum(one == other for one, other in pairs)} of 16 translations")
    print("| sentences at once | Hugging Face, float32 | imported, float32 | imported, int8 |\n|---|---:|---:|---:|")
    for count in (1, 16):
        source = sources[:count]
        ways: dict[str, Callable[[], object]] = {
            "Hugging Face": partial(generate, origin, source),
            **{name: partial(decode, engine, source) for name, engine in engines.items()},
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(args.rounds + 1):  # the first warms up
            for name, work in ways.items():
                time_once(work, seconds[name])
        cells = [f"{1000 * min(times[1:]) / count:.0f} ms" for times in seconds.values()]
        print(f"| {count} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
