"""Are the translations of a bundle those of its stored baseline?"""

from collections.abc import Sequence
from pathlib import Path

from ...bundle import Bundle
from ...errors import BundleError, InputError
from ...files import parse_json, read_whole, to_json, write_whole
from ...translator import Translator
from .result import CheckResult

BASELINE = "baseline.json"
MAX_TEXTS = 100


def save_baseline(bundle: Bundle, folder: Path, texts: Sequence[str]) -> int:
    """Write the translations of some texts, 100 at most, into the bundle for `matches_baseline`; returns how many."""
    texts = [text for text in dict.fromkeys(texts) if text][:MAX_TEXTS]
    if not texts:
        raise InputError("the baseline needs a text to translate: every line is empty")
    translations = Translator(bundle).translate(texts)
    pairs = [{"source": text, "target": target} for text, target in zip(texts, translations, strict=True)]
    write_whole(folder / BASELINE, to_json(pairs, indent=1) + "\n")
    return len(pairs)


def matches_baseline(bundle: Bundle, folder: Path) -> CheckResult:
    """The model still gives the translations that `save_baseline` stored."""
    path = folder / BASELINE
    if not path.exists():
        return CheckResult("baseline", None, "no baseline is stored; --save-baseline FILE stores one")
    try:
        pairs = [(pair["source"], pair["target"]) for pair in parse_json(read_whole(path))]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BundleError(f"{path} is not a list of translations; write it again with --save-baseline") from error
    translations = Translator(bundle).translate([source for source, _ in pairs])
    changed = [(source, old, new) for (source, old), new in zip(pairs, translations, strict=True) if old != new]
    if changed:
        source, old, new = changed[0]
        return CheckResult(
            "baseline", False,
            f"{len(changed)} of {len(pairs)} translations changed; {source!r} was {old!r}, is now {new!r}.",
        )  # fmt: skip
    return CheckResult("baseline", True, f"{len(pairs)} translations equal those of the baseline")
