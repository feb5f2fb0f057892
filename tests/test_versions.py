import sys

import pytest

from allyouneed.versions import environment, versions


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["/usr/bin/allyouneed", "train", "a b.tsv"], "allyouneed train 'a b.tsv'"),
        (["/lib/allyouneed/__main__.py", "demo"], "python -m allyouneed demo"),
        (["allyouneed", "train", "r\udce4"], r"allyouneed train 'r\udce4'"),
    ],
)
def test_the_environment_says_how_the_program_was_called(
    monkeypatch: pytest.MonkeyPatch, words: list[str], command: str
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    facts = environment()
    assert facts["command"] == command
    assert facts["versions"] == versions()
    assert facts["processor"].endswith(" cores")
