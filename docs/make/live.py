"""The model of the walk as a page that the site shows: python docs/make/live.py

Writes docs/site/live.html: the bundle docs/make/dates as the exporter writes it for a browser, and the component of
`allyouneed explain`, which shows its translations.
"""

from pathlib import Path
from string import Template

from allyouneed import Bundle
from allyouneed.apps.convert.web_model import web_library, web_model
from allyouneed.apps.explain.page import explanation_markup, explanation_script, explanation_style
from allyouneed.files import write_whole

HERE = Path(__file__).parent
PAGE = HERE.parent / "site/live.html"


def live_page() -> str:
    """The page: model, controls and component."""
    model = web_model(Bundle.load(HERE / "dates"), "float32")
    return Template((HERE / "live.html").read_text(encoding="utf-8")).substitute(
        style=explanation_style(),
        markup=explanation_markup(),
        script=f"{web_library()}\n{explanation_script(live=True)}",
        bundle=model.bundle,
        weights=model.weights,
    )


if __name__ == "__main__":
    write_whole(PAGE, live_page())
    print(PAGE)
