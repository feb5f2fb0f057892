import re
from html import unescape
from pathlib import Path

from allyouneed.apps.explain import explain
from allyouneed.translator import Translator


def test_an_explanation_shows_itself_inline_and_can_be_saved(translator_of_tests: Translator, tmp_path: Path) -> None:
    explanation = explain(translator_of_tests, "abcd")
    (inside,) = re.findall(r'srcdoc="([^"]*)"', explanation._repr_html_())
    assert unescape(inside) == explanation.page
    assert "allow-scripts" in explanation._repr_html_()
    explanation.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == explanation.page
    assert repr(explanation) == f"Explanation('abcd' → {translator_of_tests('abcd')!r})"
