"""The film of the date task, as in the paper and with one part left out at a time, and the film of a sentence.

    python docs/make/film.py [NAME]…

Trains each variant (ablations.py says how) with a film, and keeps it in docs/make/film.json: less than a minute of
processor time each; names that are there already are skipped. The site plays that; from it this writes
docs/pictures/film.svg, the picture of the README.
"""

import json
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from ablations import VARIANTS, judge
from models import ANSWER, SENTENCE
from PIL import Image

from allyouneed import Bundle, Recipe, fit, recipe_path
from allyouneed.apps.explain.film import changes, film_frame
from allyouneed.data.pairs import Pair
from allyouneed.data.tasks import task_pairs
from allyouneed.machine.files import read_json_lines, write_whole
from allyouneed.run.log import FILM_FILE

RESULT = Path(__file__).with_name("film.json")
PICTURE = Path(__file__).parent.parent / "pictures/film.svg"
BLUE = (0x4A, 0x90, 0xD9)  # readable on light and on dark
TEXTS = {  # of each task
    "dates": {"1845-01-05": "January 5, 1845", "1996-09-08": "September 8, 1996", "2026-12-20": "December 20, 2026"},
    "agreement": {SENTENCE: ANSWER},
}
FILMED = {  # the name of a variant → how the page calls it
    "as in the paper": "as in the paper",
    "without positions": "positions",
    "without the mask over the future": "mask",
    "without the memory": "memory",
    "attention not scaled": "scaling",
    "without residual": "residuals",
}
FILMS = {"dates": FILMED, "agreement": {"agreement": "as in the paper"}}

HOLD = 6  # how many times as long as another the last frame of the picture is shown
STYLE = """
.film{{color:#222;font:13px "DejaVu Sans Mono",monospace}}
@media (prefers-color-scheme:dark){{.film{{color:#ddd}}}}
.film text{{fill:currentColor}} .title{{font-weight:bold}} .row{{font-size:11px;text-anchor:end}}
.output{{font-size:19px;font-weight:bold}}
.ground{{fill:currentColor;fill-opacity:.08}} image{{image-rendering:pixelated}}
.frame{{visibility:hidden}} .last{{visibility:visible}}
@media (prefers-reduced-motion:no-preference){{
.frame{{animation:frame {seconds:g}s step-end infinite;animation-delay:calc({step:g}s*var(--n))}}
.last{{visibility:hidden;animation-name:last}}
@keyframes frame{{0%{{visibility:visible}}{first:.4f}%{{visibility:hidden}}}}
@keyframes last{{0%{{visibility:visible}}{last:.4f}%{{visibility:hidden}}}}
}}
"""


def shoot(name: str) -> dict[str, Any]:
    """Train one variant of the date recipe, or the recipe of sentences; return its frames."""
    task = "agreement" if name == "agreement" else "dates"
    replaced, overrides = VARIANTS.get(name, VARIANTS["as in the paper"])
    recipe = Recipe.read(recipe_path(task), ["train.tensorboard=false", "train.validate_every=800", *overrides])

    pairs = [Pair(*pair) for pair in task_pairs(task, "valid", count=250)]

    @torch.inference_mode()
    def make_frame(bundle: Bundle) -> Mapping[str, Any]:
        bundle.model.eval()
        exact = judge(bundle, pairs).scores["exact"]
        frames = [film_frame(bundle, text, target) for text, target in TEXTS[task].items()]
        bundle.model.train()
        return {"exact": exact, "texts": frames}

    with tempfile.TemporaryDirectory() as folder, replaced():
        output = Path(folder) / "run"
        fit(recipe, output, evaluate=None, film=make_frame)
        return {"frames": read_json_lines(output / FILM_FILE)}


def film_texts(filmed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the films of all texts, as web/film.js takes them: in each frame only the changes since the last."""
    return [
        {
            "text": text,
            "answer": answer,
            "films": [
                {"name": title, "frames": changes(of_a_text(filmed[name]["frames"], index))}
                for name, title in FILMS[task].items()
            ],
        }
        for task, texts in TEXTS.items()
        for index, (text, answer) in enumerate(texts.items())
    ]


def of_a_text(frames: Sequence[Mapping[str, Any]], index: int) -> list[dict[str, Any]]:
    return [{key: value for key, value in frame.items() if key != "texts"} | frame["texts"][index] for frame in frames]


def site_script(filmed: Mapping[str, Any]) -> str:
    """Return the script that the site runs after the component's own."""
    texts = json.dumps(film_texts(filmed), ensure_ascii=False, separators=(",", ":"))
    return f"showFilm(document.querySelector('.film'), {texts});\n"


def picture(filmed: Mapping[str, Any]) -> str:
    """Draw some frames of the first date as a moving picture: the whole model, and the model without positions."""
    names = ("as in the paper", "without positions")
    films = [of_a_text(filmed[name]["frames"], 0) for name in names]
    moments = [0, 5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, len(films[0]) - 1]
    count = len(moments) + HOLD  # the last one stays
    parts, cell = [], 13
    for side, (name, frames) in enumerate(zip(names, films, strict=True)):
        left, top = 40 + 360 * side, 92
        rows, columns = frames[0]["target"], frames[0]["source"]
        parts.append(f'<text x="{left}" y="22" class="title">{name}</text>')
        parts += [
            f'<text x="{left - 8}" y="{top + cell * (row + 0.5) + 4:g}" class="row">{_letter(piece)}</text>'
            for row, piece in enumerate(rows)
        ]
        parts += [
            f'<text x="{left + cell * (column + 0.5):g}" y="{top - 6}" text-anchor="middle">{_letter(piece)}</text>'
            for column, piece in enumerate(columns)
        ]
        ground = f'width="{cell * len(columns)}" height="{cell * len(rows)}"'
        parts.append(f'<rect x="{left}" y="{top}" {ground} class="ground"/>')
        note = left + cell * len(columns) + 16
        parts.append(f'<text x="{note}" y="{top + 200}">rows: right answer</text>')
        for number, moment in enumerate(moments):
            frame, is_last = frames[moment], number == len(moments) - 1
            loss = "" if frame["loss"] is None else f"loss {frame['loss']:.2f}"
            image = _png(frame["cross"], len(rows), len(columns))
            parts.append(
                f'<g class="frame{" last" * is_last}" style="--n:{number}">'
                f'<text x="{left}" y="40">writes on its own:</text>'
                f'<text x="{left}" y="62" class="output">{escape(frame["output"]) or "␣"}</text>'
                f'<image x="{left}" y="{top}" {ground} preserveAspectRatio="none" href="{image}"/>'
                f'<text x="{note}" y="{top + 16}" class="title">update {frame["step"]}</text>'
                f'<text x="{note}" y="{top + 38}">{loss}</text>'
                f'<text x="{note}" y="{top + 60}">{frame["exact"]:.0f} % right</text></g>'
            )
    title = "The date model learns where to look, update by update; without positions it never does"
    style = STYLE.format(seconds=0.5 * count, step=0.5, first=100 / count, last=100 * (HOLD + 1) / count)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="film" role="img" viewBox="0 0 740 320" width="740" '
        f'height="320">\n<title>{title}</title>\n<style>{style}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _letter(piece: str) -> str:
    return "·" if piece.startswith("<") else escape(piece)


def _png(weights: str, rows: int, columns: int) -> str:
    """Write bytes of weights as the URL of a picture with a pixel each, the stronger the bluer."""
    alpha = Image.frombytes("L", (columns, rows), b64decode(weights))
    pixels, packed = Image.new("RGBA", alpha.size, BLUE), BytesIO()
    pixels.putalpha(alpha)
    pixels.save(packed, "PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(packed.getvalue()).decode()}"


if __name__ == "__main__":
    filmed = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name in sys.argv[1:] or [*FILMED, "agreement"]:
        if name not in filmed:
            filmed[name] = shoot(name)
            print(f"{name:<36}{filmed[name]['frames'][-1]['exact']:6.1f} %", flush=True)
            lines = [f"{json.dumps(name)}: {json.dumps(film, ensure_ascii=False)}" for name, film in filmed.items()]
            RESULT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    write_whole(PICTURE, picture(filmed))
