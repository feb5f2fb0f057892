"""What can be checked of a bundle's text: its vocabulary and its remembered translations."""

from collections.abc import Sequence
from pathlib import Path

import torch

from ..bundle import Bundle
from ..errors import BundleError, InputError
from ..files import parse_json, to_json, write_whole
from ..text.tokenizer import Tokenizer
from ..translator import Translator
from .result import CheckResult

PROBES = "baseline.json"
MOST_PROBES = 100


def text_survives(sides: Sequence[tuple[Tokenizer, Sequence[str]]]) -> CheckResult:
    """Text → ids → text gives the text back: the sentences at hand, and some strung from the vocabulary."""
    chance = torch.Generator().manual_seed(1)
    tried = 0
    for tokenizer, texts in sides:
        ids = torch.randint(len(tokenizer), (50, 8), generator=chance).tolist()
        made_up = [text for text in (tokenizer.decode(row).strip() for row in ids) if text]
        tried += len(texts) + len(made_up)
        for text in [*texts, *made_up]:
            back = tokenizer.decode(tokenizer.encode(text))
            if back != text:
                words = f"{text!r} becomes ids and comes back as {back!r}: the tokenizer loses text."
                return CheckResult("text", False, words)
    return CheckResult("text", True, f"{tried:,} texts become ids and come back the same")


def save_baseline(bundle: Bundle, folder: Path, texts: Sequence[str]) -> int:
    """Write the translations of some texts, 100 at most, into the bundle for `matches_baseline`; returns how many."""
    texts = [text for text in dict.fromkeys(texts) if text][:MOST_PROBES]
    if not texts:
        raise InputError("there is no text to remember: every line is empty")
    translations = Translator(bundle).translate(texts)
    probes = [{"source": text, "target": target} for text, target in zip(texts, translations, strict=True)]
    write_whole(folder / PROBES, to_json(probes, indent=1) + "\n")
    return len(probes)


def matches_baseline(bundle: Bundle, folder: Path) -> CheckResult:
    """The model translates what `remember` wrote down as it did then."""
    path = folder / PROBES
    if not path.exists():
        return CheckResult(
            "probes", None, "nothing to compare with: --save-baseline FILE notes what the model says today"
        )
    try:
        probes = [(probe["source"], probe["target"]) for probe in parse_json(path.read_bytes())]
    except (ValueError, TypeError, KeyError) as error:
        raise BundleError(
            f"{path} is no list of remembered translations; write it anew with --save-baseline"
        ) from error
    now = Translator(bundle).translate([source for source, _ in probes])
    changed = [(source, then, new) for (source, then), new in zip(probes, now, strict=True) if then != new]
    if changed:
        source, then, new = changed[0]
        return CheckResult(
            "probes", False,
            f"{len(changed)} of {len(probes)} remembered translations changed; {source!r} was {then!r}, is {new!r}.",
        )  # fmt: skip
    return CheckResult("probes", True, f"{len(probes)} remembered translations are what they were")
