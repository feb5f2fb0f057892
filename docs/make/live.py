"""The model of the walk as a page that the site shows: python docs/make/live.py

Writes docs/site/live.html from the bundle docs/make/dates. It is an export like any other, so it is kept only if it
translates as the bundle does.
"""

import tempfile
from pathlib import Path

from allyouneed import Bundle
from allyouneed.convert.formats import export_bundle
from allyouneed.files import write_whole

HERE = Path(__file__).parent
PAGE = HERE.parent / "site/live.html"


def live_page() -> str:
    """The exported page, proven."""
    with tempfile.TemporaryDirectory() as folder:
        export_bundle(Bundle.load(HERE / "dates"), Path(folder) / "page", to="html")
        (page,) = (Path(folder) / "page").glob("*.html")
        return page.read_text(encoding="utf-8")


if __name__ == "__main__":
    write_whole(PAGE, live_page())
    print(PAGE)
