"""SHA256SUMS: what it covers, what it refuses, and that a writer who is killed leaves a bundle that loads."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.bundle import Bundle
from allyouneed.errors import BundleError
from allyouneed.machine import checksums
from allyouneed.machine.checksums import SUMS, Checksums, code_digest
from allyouneed.machine.files import write_whole
from bundles import make_bundle, strip_checksums
from shell import refusal

FILES = ("README.md", "config.json", "tokenizer.json", "weights.safetensors", SUMS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "bundle"
    replace(make_bundle(encoder_layers=1, decoder_layers=1), card="# A card\n").save(folder)
    return folder


def test_the_program_sha256sum_accepts_it(saved: Path) -> None:
    result = subprocess.run(
        ["sha256sum", "--check", "--strict", SUMS], cwd=saved, capture_output=True, check=False, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == "README.md: OK\nconfig.json: OK\ntokenizer.json: OK\nweights.safetensors: OK\n"


@given(name=st.sampled_from(FILES), where=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_any_changed_byte_is_refused_and_one_of_the_card_is_noticed(
    name: str, where: float, flip: int, whole: Path
) -> None:
    content = (whole / name).read_bytes()
    changed = bytearray(content)
    changed[int(where * len(content))] ^= flip
    (whole / name).write_bytes(changed)
    try:
        Bundle.load(whole)
    except BundleError:
        assert name != "README.md"
    else:
        assert name in ("README.md", SUMS)  # a digest of the card may be changed, too
        assert not Checksums(whole).matches("README.md")
    finally:
        (whole / name).write_bytes(content)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_and_a_missing_file_are_refused_in_a_line(name: str, saved: Path) -> None:
    content = (saved / name).read_bytes()
    if name != "README.md":
        for length in (0, 9, len(content) // 2, len(content) - 1):
            (saved / name).write_bytes(content[:length])
            assert name in refusal("translate", saved, stdin=b"abc\n")
    (saved / name).unlink()
    assert f"({name}" in refusal("translate", saved, stdin=b"abc\n")


def test_the_reason_names_the_file(saved: Path) -> None:
    (saved / "weights.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(BundleError, match="weights.safetensors .*SHA-256"):
        Bundle.load(saved)


def test_a_list_without_a_file_is_refused(saved: Path) -> None:
    lines = (saved / SUMS).read_text().splitlines(keepends=True)
    for line in lines:
        (saved / SUMS).write_text("".join(other for other in lines if other != line))
        with pytest.raises(BundleError, match=f"SHA256SUMS .*{line.split()[1]}"):
            Bundle.load(saved)


def test_a_list_may_have_other_files(saved: Path) -> None:
    (saved / "notes.txt").write_text("mine")
    with (saved / SUMS).open("a") as file:
        file.write(f"{'0' * 64}  notes.txt\n")
    assert Bundle.load(saved)


def test_a_tokenizer_of_an_earlier_model_is_left_alone(saved: Path) -> None:
    """A bundle with one vocabulary that replaces one with two leaves the other file, without a line in the list."""
    (saved / "tokenizer.target.json").write_text("damaged")
    assert Bundle.load(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(name: str, saved: Path) -> None:
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(BundleError, match=name):
        Bundle.load(saved)


def test_a_bundle_from_before_there_were_checksums_loads(saved: Path) -> None:
    strip_checksums(saved)
    assert Bundle.load(saved)
    assert not Checksums(saved).present


@pytest.mark.parametrize("last", range(7))
def test_a_writer_killed_at_any_moment_leaves_a_bundle_that_loads(
    last: int, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle of another model of these sizes replaces one; the first `last` files are written."""
    written: list[Path] = []

    def write(path: Path, content: bytes | str) -> None:
        if len(written) == last:
            raise KeyboardInterrupt
        written.append(path)
        write_whole(path, content)

    other = Bundle.load(saved)
    torch.nn.init.normal_(other.model.source_embedding.table)
    monkeypatch.setattr(checksums, "write_whole", write)
    if last < 6:
        with pytest.raises(KeyboardInterrupt):
            replace(other, card="another").save(saved)
    else:
        replace(other, card="another").save(saved)
        assert (saved / SUMS).read_text().count("\n") == 4
    assert Bundle.load(saved)


def test_a_bundle_that_is_replaced_while_it_is_read_is_read_again(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Bundle.load(saved)
    torch.nn.init.zeros_(other.model.source_embedding.table)
    verify = Checksums.verify

    def slowly(sums: Checksums, name: str) -> None:
        if name == "weights.safetensors":
            monkeypatch.undo()
            other.save(saved)
        verify(sums, name)

    monkeypatch.setattr(Checksums, "verify", slowly)
    assert not Bundle.load(saved).model.source_embedding.table.any()


def test_a_digest_of_code_depends_on_what_computes_alone(tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    digests = []
    for text in (
        'def f(x):\n    """Return it."""\n    return x  # as it is\n',
        "def f(x):\n\n    # changed\n    return x\n",
        "def f(x):\n    return -x\n",
    ):
        file.write_text(text)
        digests.append(code_digest([file]))
    assert digests[0] == digests[1] != digests[2]
