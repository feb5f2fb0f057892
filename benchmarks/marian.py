"""Train a Hugging Face Marian model for some time on the pairs of one of our runs, and compare the translations.

    python benchmarks/marian.py runs/mine --core-minutes 120 --source test.en.gz --target test.de.gz

`runs/mine` is a folder that `allyouneed train` wrote. The Marian model has its pairs, vocabulary, sizes, batches and
label smoothing, and is trained by AdamW with a warmup and a learning rate that falls linearly to zero at the end of the
time. Then both models translate the test set with a beam of 4. Time is the sum over all processor cores, so that other
programs on the machine take nothing from it: an hour on two cores is 120. Needs `pip install transformers`.
"""

import argparse
import gzip
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from allyouneed import Bundle, ModelConfig, Recipe, Tokenizer, Translator
from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch, batches, pad
from allyouneed.data.pairs import EncodedPairs
from allyouneed.data.prepare import prepare
from allyouneed.machine.device import available_cores, retain_freed_memory
from allyouneed.metrics import bleu, chrf
from allyouneed.text.vocabulary import Vocabulary

WARMUP = 1_000


def make_marian(ours: ModelConfig, tokenizer: Tokenizer, *, min_positions: int) -> MarianMTModel:
    """Make a Marian model with our sizes and dropout, and new weights."""
    return MarianMTModel(
        MarianConfig(
            vocab_size=ours.vocab_size,
            d_model=ours.d_model,
            encoder_layers=ours.encoder_layers,
            decoder_layers=ours.decoder_layers,
            encoder_attention_heads=ours.heads,
            decoder_attention_heads=ours.heads,
            encoder_ffn_dim=ours.d_ff,
            decoder_ffn_dim=ours.d_ff,
            max_position_embeddings=max(ours.max_length, min_positions),
            activation_function="relu",
            dropout=ours.dropout,
            scale_embedding=True,
            pad_token_id=tokenizer.pad_id,
            bos_token_id=tokenizer.sos_id,
            eos_token_id=tokenizer.eos_id,
            decoder_start_token_id=tokenizer.sos_id,
            forced_eos_token_id=None,
        )
    )


def batch_loss(model: MarianMTModel, batch: Batch, *, smoothing: float) -> Tensor:
    pad_id = model.config.pad_token_id
    logits = model(
        input_ids=batch.source, attention_mask=batch.source != pad_id, decoder_input_ids=batch.target_in
    ).logits
    return F.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )


def fit(
    model: MarianMTModel,
    settings: TrainConfig,
    pairs: EncodedPairs,
    *,
    progress: Callable[[int], float],
    peak: float,
    warmup: int = WARMUP,
    after_update: Callable[[int], None] = lambda step: None,
) -> int:
    """Train until `progress` of the next update is 1, with a warmup of so many updates; returns the updates made."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    model.train()
    begin = printed = time.monotonic()
    feed = batches(pairs, batch_tokens=settings.batch_tokens, seed=settings.seed, pad_id=model.config.pad_token_id)
    for step, batch in enumerate(feed, start=1):
        spent = progress(step)
        if spent >= 1:
            return step - 1
        for group in optimizer.param_groups:
            group["lr"] = peak * min(step / warmup, 1.0) * (1 - spent)
        loss = batch_loss(model, batch, smoothing=settings.label_smoothing)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        after_update(step)
        if time.monotonic() - printed > 60:
            printed = time.monotonic()
            print(f"{(printed - begin) / 60:5.1f} minutes, update {step:,}, loss {loss.item():.3f}", file=sys.stderr)
    raise AssertionError("batches have no end")


def until(minutes: float, clock: Callable[[], float]) -> Callable[[int], float]:
    """Return the progress of training that starts now and ends after some minutes of `clock`."""
    begin = clock()
    return lambda step: (clock() - begin) / (60 * minutes)


@torch.inference_mode()
def translate(
    model: MarianMTModel, tokenizer: Tokenizer, texts: list[str], *, beam: int = 4, batch_size: int = 50
) -> list[str]:
    """Translate all texts by `generate`, in batches of similar length. One vocabulary has both sides."""
    model.eval()
    special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id}
    sources = tokenizer.encode_all(texts)
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    translations = [""] * len(texts)
    for begin in range(0, len(order), batch_size):
        indices = order[begin : begin + batch_size]
        ids = pad([sources[i] for i in indices], tokenizer.pad_id)
        outputs = model.generate(
            input_ids=ids, attention_mask=ids != tokenizer.pad_id, num_beams=beam, max_new_tokens=ids.size(1) + 50
        )
        for i, output in zip(indices, outputs.tolist(), strict=True):
            translations[i] = tokenizer.decode([token for token in output if token not in special])
    return translations


def lines(path: Path) -> list[str]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line.strip() for line in text.decode().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--core-minutes", type=float, default=120)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--peak", type=float, default=7e-4, help="peak learning rate")
    parser.add_argument("--threads", type=int, default=available_cores())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    retain_freed_memory()
    bundle, recipe = Bundle.load(options.run), Recipe.read(options.run / "recipe.toml")
    sources, references = lines(options.source), lines(options.target)
    tokenizer = bundle.source_tokenizer
    longest = max(map(len, tokenizer.encode_all(sources)))
    marian = make_marian(
        replace(bundle.model.config, dropout=recipe.model.dropout), tokenizer, min_positions=longest + 60
    )
    vocabulary = Vocabulary(bundle.source_tokenizer, bundle.target_tokenizer)
    with TemporaryDirectory() as folder:
        prepared = prepare(
            recipe.data, recipe.clean, Path(folder, "data"), max_length=recipe.model.max_length, vocabulary=vocabulary
        )
        print(
            f"torch {torch.__version__}, {options.threads} threads; {marian.num_parameters():,} parameters, "
            f"ours {bundle.model.parameter_count():,}; batches of {recipe.train.batch_tokens:,} tokens",
            flush=True,
        )
        progress = until(options.core_minutes, time.process_time)
        updates = fit(marian, recipe.train, prepared.train, progress=progress, peak=options.peak)
    marian_outputs = translate(marian, tokenizer, sources)
    our_outputs = Translator(bundle, precision="float32").translate(sources)
    print(f"after {options.core_minutes:g} core minutes and {updates:,} updates; ours is {options.run}")
    for metric in (bleu, chrf):
        marian_score, our_score = metric(marian_outputs, references), metric(our_outputs, references)
        print(f"{our_score.name}: Marian {marian_score.value:.2f}, ours {our_score.value:.2f} ({our_score.signature})")


if __name__ == "__main__":
    main()
