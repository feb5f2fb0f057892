"""The models of the walk for the pages of the site, and the film of the first page.

`write_site` is called when the site is built. It writes docs/site/model.js: the bundles of `MODELS`, as the exporter
writes them, and models.js of this folder. components.js and components.css are the components of `explain`; film.js,
live.js and closely.js fill the parts of pages.
"""

import json
import shutil
from pathlib import Path

import film
from models import AGREEMENT_MODEL, SENTENCE

from allyouneed import Bundle
from allyouneed.apps.cli.demo import DATE_MODEL
from allyouneed.apps.convert.html import web_library, web_model
from allyouneed.apps.explain.component import explanation_markup, explanation_style, site_script
from allyouneed.machine.files import write_whole

HERE = Path(__file__).parent
SITE = HERE.parent / "site"
MODELS = {  # how a page calls each: its bundle, and the text that it begins with
    "Dates": (DATE_MODEL, "1845-01-05"),
    "English → Italian": (AGREEMENT_MODEL, SENTENCE),
}


def markup(name: str) -> str:
    """Return the HTML of the part `name` of a page: "film", "live" or "closely"."""
    component = explanation_markup().replace("explanation", f"explanation {name}", 1)
    if name == "film":
        return '<div class="look film"></div>'
    if name == "live":
        return read("live-form.html") + component
    return f'<div class="look plane"></div>\n{read("closely-form.html")}{component}'


def scripts(name: str) -> list[str]:
    """List the files of `docs/site` that a part needs, in their order."""
    return ["components.js", *(["film.js"] if name == "film" else ["model.js", f"{name}.js"])]


def models_script() -> str:
    """Return the script of the models: a global `models`, each with its name, text and translator."""
    models = []
    for name, (bundle, text) in MODELS.items():
        model = web_model(Bundle.load(bundle), "int8")
        about = json.dumps({"name": name, "text": text})
        models.append(f'{{ ...{about}, translator: new Translator({model.bundle}, "{model.weights}") }}')
    return f"{web_library()}\nconst models = [{', '.join(models)}];\n{read('models.js')}"


def read(name: str) -> str:
    """Read a file of this folder."""
    return (HERE / name).read_text(encoding="utf-8")


def style() -> str:
    """Return the style of all parts."""
    return explanation_style() + read("live.css")


def write_site() -> None:
    """Write everything."""
    write_whole(SITE / "components.js", site_script())
    write_whole(SITE / "components.css", style())
    write_whole(SITE / "model.js", models_script())
    for name in ("live.js", "closely.js"):
        shutil.copy(HERE / name, SITE / name)
    write_whole(SITE / "film.js", film.site_script(json.loads(film.RESULT.read_text(encoding="utf-8"))))


def whole_page(name: str) -> str:
    """Make a part a page of its own, for tests."""
    parts = {"components.js": site_script(), "model.js": models_script()}
    code = "".join(f"<script>{parts.get(file) or read(file)}</script>" for file in scripts(name))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta name="color-scheme" content="light dark"><title>{name}</title>'
        f"<style>body {{ background: light-dark(#fdfdfc, #17181a) }}"
        f"{style()}</style>"
        f"<main>{markup(name)}</main>{code}"
    )
