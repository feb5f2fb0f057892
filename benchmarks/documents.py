"""The time of reading and finishing documents of many tags, and what twice the text costs: about twice, if linear.

    python benchmarks/documents.py --characters 60000

Nothing is translated, so a model has no part in the time.
"""

import argparse
import json
import time
from collections.abc import Callable

from allyouneed.apps.documents import DocumentOptions, read_document
from allyouneed.apps.documents.document_translation import finish_document, plan_document
from allyouneed.text.sentences import cut
from allyouneed.translator import Translation

TEXTS = ("%s<b>a</b>{x} ", "<x>%s</x> a ", "` ", "`a` ", "%s a ", "a. ", "1845-01-05 ")
WRAPPED: dict[str, Callable[[str], str]] = {
    "json": lambda text: json.dumps({"a": text}),
    "po": lambda text: f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "{text}"\nmsgstr ""\n',
    "csv": lambda text: f"text\n{text}\n",
    "srt": lambda text: f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n",
    "md": str,
    "html": str,
}


def seconds_for_document(kind: str, text: str) -> float:
    """Read, plan and finish a document whose translation is its source."""
    start = time.process_time()
    options = DocumentOptions(column="text" if kind == "csv" else "")
    plan = plan_document(read_document(WRAPPED[kind](text).encode(), kind, options), languages=("en", "it"))
    finish_document(plan, {text: Translation(text, text) for text in (*plan.aligned, *plan.plain)})
    return time.process_time() - start


def seconds_for_cutting(text: str) -> float:
    """Cut a text into parts of at most 100 characters."""
    start = time.process_time()
    cut(text, lambda part: len(part) <= 100, language="it")
    return time.process_time() - start


def main() -> None:
    """Print a row for each text and format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=30_000)
    characters = parser.parse_args().characters
    print(f"{'text':<18}{'format':<8}{'seconds':>9}{'twice the text':>16}{'ratio':>7}")
    for text in TEXTS:
        for kind in (*WRAPPED, "cut"):
            once, twice = (
                seconds_for_cutting(text * (size // len(text)))
                if kind == "cut"
                else seconds_for_document(kind, text * (size // len(text)))
                for size in (characters, 2 * characters)
            )
            print(f"{text!r:<18}{kind:<8}{once:>9.3f}{twice:>16.3f}{twice / max(once, 1e-3):>7.1f}")


if __name__ == "__main__":
    main()
