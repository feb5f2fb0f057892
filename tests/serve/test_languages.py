import pytest

from allyouneed.apps.serve.languages import find_code


@pytest.mark.parametrize(
    ("code", "served", "expected"),
    [
        ("en", ["en", "it"], "en"),
        ("EN", ["en", "it"], "en"),
        (" it ", ["en", "it"], "it"),
        ("en-GB", ["en"], "en"),
        ("pt_BR", ["pt"], "pt"),
        ("pb", ["pt", "pt-BR"], "pt-BR"),
        ("pt", ["pt", "pt-BR"], "pt"),
        ("pt", ["pt-BR"], "pt-BR"),
        ("pt", ["pt-BR", "pt-PT"], None),  # which of the two is not clear
        ("zh", ["zh-Hans", "zh-Hant"], "zh-Hans"),
        ("zt", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("zh-TW", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("nb", ["no"], "no"),
        ("de", ["en", "it"], None),
        ("", ["en"], None),
        ("auto", ["en"], None),
    ],
)
def test_a_client_may_write_a_code_in_its_own_way(code: str, served: list[str], expected: str | None) -> None:
    assert find_code(code, served) == expected
