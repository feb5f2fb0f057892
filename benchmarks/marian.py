"""How good a plain Hugging Face Marian model gets in so much time on the pairs of one of our runs.

    python benchmarks/marian.py runs/mine --core-minutes 120 --source test.en.gz --target test.de.gz

`runs/mine` is a folder that `allyouneed train` left: the peer learns from its very pairs, with its
vocabulary, its sizes, its batches and its label smoothing, by AdamW with a warm-up and a rate that
falls in a straight line to zero when the time is over. Then it translates the test set (`generate`,
beam 4), and so does our bundle. Time is that of all processor cores together, so that other work on
the machine costs the peer nothing: an hour on two cores is 120. Needs `pip install transformers`.
"""

import argparse
import gzip
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from allyouneed import Bundle, Recipe, Translator
from allyouneed.data.batch import Batch, pad
from allyouneed.data.prepare import prepare
from allyouneed.data.sampler import batches
from allyouneed.data.store import EncodedPairs
from allyouneed.device import retain_freed_memory
from allyouneed.metrics import bleu, chrf
from allyouneed.text.vocabulary import Vocabulary

WARMUP = 1_000


def plain_marian(bundle: Bundle, *, dropout: float, smallest_end: int) -> MarianMTModel:
    """A Marian model of the sizes of ours, with fresh weights."""
    ours, tokenizer = bundle.model.config, bundle.source_tokenizer
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
            max_position_embeddings=max(ours.max_length, smallest_end),
            activation_function="relu",
            dropout=dropout,
            scale_embedding=True,
            pad_token_id=tokenizer.pad_id,
            bos_token_id=tokenizer.sos_id,
            eos_token_id=tokenizer.eos_id,
            decoder_start_token_id=tokenizer.sos_id,
            forced_eos_token_id=None,
        )
    )


def loss_of(model: MarianMTModel, batch: Batch, *, smoothing: float) -> Tensor:
    pad_id = model.config.pad_token_id
    logits = model(
        input_ids=batch.source, attention_mask=batch.source != pad_id, decoder_input_ids=batch.target_in
    ).logits
    return F.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )


def fit(model: MarianMTModel, recipe: Recipe, pairs: EncodedPairs, *, minutes: float, peak: float) -> int:
    """Train for so many minutes of processor time; returns the number of updates."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    model.train()
    begin = said = time.process_time()
    settings = recipe.train
    feed = batches(pairs, batch_tokens=settings.batch_tokens, seed=settings.seed, pad_id=model.config.pad_token_id)
    for step, batch in enumerate(feed, start=1):
        spent = (time.process_time() - begin) / (60 * minutes)
        if spent >= 1:
            return step - 1
        for group in optimizer.param_groups:
            group["lr"] = peak * min(step / WARMUP, 1.0) * (1 - spent)
        loss = loss_of(model, batch, smoothing=settings.label_smoothing)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if time.process_time() - said > 60:
            said = time.process_time()
            print(f"{(said - begin) / 60:5.1f} core minutes, update {step:,}, loss {loss.item():.3f}", flush=True)
    raise AssertionError("batches have no end")


@torch.inference_mode()
def translate(model: MarianMTModel, bundle: Bundle, texts: list[str], *, batch_size: int = 50) -> list[str]:
    """All texts by `generate`, beam 4, sorted by length."""
    model.eval()
    tokenizer = bundle.source_tokenizer
    sources = tokenizer.encode_all(texts)
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    translations = [""] * len(texts)
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        ids = pad([sources[i] for i in chosen], tokenizer.pad_id)
        outputs = model.generate(
            input_ids=ids, attention_mask=ids != tokenizer.pad_id, num_beams=4, max_new_tokens=ids.size(1) + 50
        )
        for i, output in zip(chosen, outputs.tolist(), strict=True):
            translations[i] = tokenizer.decode([one for one in output if one not in special(bundle)])
    return translations


def special(bundle: Bundle) -> set[int]:
    return {bundle.source_tokenizer.pad_id, bundle.source_tokenizer.sos_id, bundle.source_tokenizer.eos_id}


def lines(path: Path) -> list[str]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line.strip() for line in text.decode().splitlines()]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("run", type=Path)
    options.add_argument("--core-minutes", type=float, default=120)
    options.add_argument("--source", type=Path, required=True)
    options.add_argument("--target", type=Path, required=True)
    options.add_argument("--peak", type=float, default=7e-4, help="the highest rate")
    options.add_argument("--threads", type=int, default=os.cpu_count())
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(1)
    retain_freed_memory()
    bundle, recipe = Bundle.load(chosen.run), Recipe.read(chosen.run / "recipe.toml")
    sources, references = lines(chosen.source), lines(chosen.target)
    longest = max(map(len, bundle.source_tokenizer.encode_all(sources)))
    marian = plain_marian(bundle, dropout=recipe.model.dropout, smallest_end=longest + 60)
    vocabulary = Vocabulary(bundle.source_tokenizer, bundle.target_tokenizer)
    with TemporaryDirectory() as place:
        prepared = prepare(
            recipe.data, recipe.clean, Path(place, "data"), max_length=recipe.model.max_length, vocabulary=vocabulary
        )
        print(
            f"torch {torch.__version__}, {chosen.threads} threads; {marian.num_parameters():,} parameters, "
            f"ours {bundle.model.parameter_count():,}; batches of {recipe.train.batch_tokens:,} tokens",
            flush=True,
        )
        updates = fit(marian, recipe, prepared.train, minutes=chosen.core_minutes, peak=chosen.peak)
    theirs = translate(marian, bundle, sources)
    ours = Translator(Bundle.load(chosen.run)).translate(sources)  # which may have gone on meanwhile
    print(f"after {chosen.core_minutes:g} core minutes and {updates:,} updates; ours as it stands in {chosen.run}")
    for measure in (bleu, chrf):
        their_score, our_score = measure(theirs, references), measure(ours, references)
        print(f"{our_score.name}: Marian {their_score.value:.2f}, ours {our_score.value:.2f} ({our_score.signature})")


if __name__ == "__main__":
    main()
