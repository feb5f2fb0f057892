"""Writes outputs.jsonl into a stored bundle: what this version translates, for later versions to compare with.

    python tests/released/store_outputs.py FOLDER "a source" "another source"

Without sources, the bundle's own probes. tests/test_released.py reads it.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from allyouneed import Translator

SEARCHES = [(precision, beam) for precision in ("float32", "int8") for beam in (1, 4)]


def outputs(folder: Path, sources: Sequence[str]) -> Iterator[dict[str, object]]:
    """A row for each search and source."""
    for precision, beam in SEARCHES:
        translator = Translator.load(folder, device="cpu", precision=precision, beam=beam)
        for source, translation in zip(sources, translator.translations(sources), strict=True):
            confidence = round(translation.confidence, 6)
            yield {
                "precision": precision, "beam": beam, "source": source,
                "text": translation.text, "confidence": confidence,
            }  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1])
    sources = sys.argv[2:] or json.loads((folder / "config.json").read_text(encoding="utf-8"))["probes"]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in outputs(folder, sources)]
    (folder / "outputs.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
