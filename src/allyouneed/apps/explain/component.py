"""The JavaScript, style and HTML of an explanation, for the pages that show it. Independent of any model."""

from pathlib import Path

_WEB = Path(__file__).with_name("web")
COMPONENT = ("dom.js", "selection.js", "heatmap.js", "lines.js", "tree.js", "microscope.js", "views.js", "explain.js")
FILM = ("dom.js", "heatmap.js", "film.js")
SITE = (*COMPONENT, "live.js", "plane.js", "film.js")


def explanation_script(*, live: bool = False) -> str:
    """Return the JavaScript of the page's component.

    With `live`, it can translate with a model that runs in the page.
    """
    return "\n".join(map(read_component_file, [*COMPONENT, *["live.js"] * live]))


def site_script() -> str:
    """Return the JavaScript of all components, for pages that show several."""
    return "\n".join(map(read_component_file, SITE))


def film_script() -> str:
    """Return the JavaScript of `showFilm(root, texts)`, which fills a `<div class="look film">`; see film.js."""
    return "\n".join(map(read_component_file, FILM))


def explanation_style() -> str:
    """Return the style of the component, for pages that show it."""
    return read_component_file("explain.css")


def explanation_markup() -> str:
    """Return the component's HTML for other pages, `<div class="look explanation">`, for `showExplanation`."""
    page = read_component_file("explain.html")
    main = page[page.index("<main") : page.index("</main>")].replace("<main", "<div", 1)
    return main.replace("<h1 data", '<p class="headline" data').replace("</h1>", "</p>") + "</div>"


def read_component_file(name: str) -> str:
    """Read a text file of web/."""
    return _WEB.joinpath(name).read_text(encoding="utf-8")
