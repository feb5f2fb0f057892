"""The model of the walk for the pages of the site, and the film of the first page.

`write_site` is called when the site is built. It writes docs/site/model.js, which defines `translator`: the bundle of
`allyouneed try`, as the exporter writes it. components.js and components.css are the components of `explain`; film.js,
live.js and closely.js fill the parts of pages.
"""

import json
import shutil
from pathlib import Path

import film

from allyouneed import Bundle
from allyouneed.apps.cli.demo import DATE_MODEL
from allyouneed.apps.convert.html import web_library, web_model
from allyouneed.apps.explain.component import explanation_markup, explanation_style, site_script
from allyouneed.machine.files import write_whole

HERE = Path(__file__).parent
SITE = HERE.parent / "site"


def markup(name: str) -> str:
    """Return the HTML of the part `name` of a page: "film", "live" or "closely"."""
    component = explanation_markup().replace("explanation", f"explanation {name}", 1)
    if name == "film":
        return '<div class="look film"></div>'
    if name == "live":
        return (HERE / "live-form.html").read_text(encoding="utf-8") + component
    text = '<label>Text <input id="closely-input" value="1845-01-05" spellcheck="false" size="14"></label>'
    return f'<div class="look plane"></div>\n<div class="look">{text}</div>\n{component}'


def scripts(name: str) -> list[str]:
    """List the files of `docs/site` that a part needs, in their order."""
    return ["components.js", *(["film.js"] if name == "film" else ["model.js", f"{name}.js"])]


def model_script() -> str:
    """Return the script of the model, as a global `translator`."""
    model = web_model(Bundle.load(DATE_MODEL), "int8")
    return f'{web_library()}\nglobalThis.translator = new Translator({model.bundle}, "{model.weights}");\n'


def style() -> str:
    """Return the style of all parts."""
    return explanation_style() + (HERE / "live.css").read_text(encoding="utf-8")


def write_site() -> None:
    """Write everything."""
    write_whole(SITE / "components.js", site_script())
    write_whole(SITE / "components.css", style())
    write_whole(SITE / "model.js", model_script())
    for name in ("live.js", "closely.js"):
        shutil.copy(HERE / name, SITE / name)
    write_whole(SITE / "film.js", film.site_script(json.loads(film.RESULT.read_text(encoding="utf-8"))))


def whole_page(name: str) -> str:
    """Make a part a page of its own, for tests."""
    parts = {"components.js": site_script(), "model.js": model_script()}
    code = "".join(
        f"<script>{parts.get(file) or (HERE / file).read_text(encoding='utf-8')}</script>" for file in scripts(name)
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta name="color-scheme" content="light dark"><title>{name}</title>'
        f"<style>body {{ background: light-dark(#fdfdfc, #17181a) }}"
        f"{style()}</style>"
        f"<main>{markup(name)}</main>{code}"
    )
