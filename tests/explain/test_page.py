import re
from html.parser import HTMLParser

import pytest

from allyouneed.explain import Trace, build_page
from allyouneed.explain.page import _for_script
from allyouneed.translator import Translator


@pytest.fixture(scope="module")
def page(trace: Trace, translator_of_tests: Translator) -> str:
    return build_page(trace, translator_of_tests)


def test_the_page_needs_nothing_else(page: str) -> None:
    links = re.findall(r"""(?:src|href)=["']?([^"'\s>]+)""", page)
    assert all(link.startswith(("#", "data:")) for link in links), links
    assert "@import" not in page
    assert "url(http" not in page


def test_every_link_of_the_page_leads_somewhere(page: str) -> None:
    ids = set(re.findall(r'<h2 id="([a-z]+)"', page))
    assert set(re.findall(r'<a href="#([a-z]+)"', page)) == ids


def test_every_box_is_there_and_nothing_is_left_to_fill_in(page: str) -> None:
    HTMLParser().feed(page)
    assert page.count("<svg") == 5
    assert not re.findall(r"\$[a-z]+", page)
    assert "encoder 1, attention" in page


def test_text_cannot_become_markup() -> None:
    assert _for_script("</script>") == '"\\u003c/script>"'
