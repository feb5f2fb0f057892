"""SentencePiece models in the tokenizers library, beside SentencePiece, and files from strangers."""

import base64
import json
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor

from allyouneed.errors import CheckpointError, DataError
from allyouneed.text.character_map import CharacterMap, check_character_map
from allyouneed.text.sentencepiece import SentencePieceModel, make_tokenizer
from allyouneed.text.tokenizer import Tokenizer
from marian_checkpoints import ENGLISH, ITALIAN, TEXTS, train_spm


@pytest.fixture(scope="module")
def spm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spm") / "a.spm"
    train_spm(ENGLISH, path, 120)
    return path


def load(path: Path) -> tuple[Tokenizer, SentencePieceProcessor]:
    """Load a model as our tokenizer, whose ids are mixed, and as SentencePiece."""
    model = SentencePieceModel.load(path)
    symbols = ["<eos>", "<unk>", *sorted(piece for piece, _ in model.pieces), "<pad>"]
    return make_tokenizer(model, symbols, start=None), SentencePieceProcessor(model_file=str(path))


def ids(tokenizer: Tokenizer, reference: SentencePieceProcessor, text: str) -> list[int]:
    names = {name: i for i, name in enumerate(tokenizer.names())}
    return [names.get(piece, 1) for piece in reference.encode(text, out_type=str)]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "identity"])
def test_the_pieces_are_those_of_sentencepiece(tmp_path: Path, rule: str, kind: str) -> None:
    train_spm([*ENGLISH, *ITALIAN], tmp_path / "a.spm", 130, normalization_rule_name=rule, model_type=kind)
    tokenizer, reference = load(tmp_path / "a.spm")
    for text in [*ENGLISH, *ITALIAN, *TEXTS, "  two  blanks ", "ÀÉ ① ㎏ ｆｕｌｌ", "<s> </s> <unk>"]:
        assert tokenizer.encode(text)[:-1] == ids(tokenizer, reference, text), text


def test_the_settings_are_read(spm: Path) -> None:
    model = SentencePieceModel.load(spm)
    assert model.normalization == "nmt_nfkc"
    assert model.names[:3] == ("<unk>", "<s>", "</s>")
    assert len(model.pieces) == len(model.names) - 3


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"model_type": "char"}, "BPE"),
        ({"add_dummy_prefix": False}, "add_dummy_prefix is off"),
        ({"remove_extra_whitespaces": False}, "remove_extra_whitespaces is off"),
        ({"treat_whitespace_as_suffix": True}, "treat_whitespace_as_suffix"),
        ({"user_defined_symbols": ["river"]}, "type 4"),
        ({"byte_fallback": True, "vocab_size": 400}, "type 6"),
    ],
    ids=str,
)
def test_what_the_tokenizers_library_lacks_is_refused(tmp_path: Path, options: dict[str, object], why: str) -> None:
    size = int(str(options.pop("vocab_size", 120)))
    train_spm(ENGLISH, tmp_path / "a.spm", size, **options)
    with pytest.raises(CheckpointError, match=why):
        SentencePieceModel.load(tmp_path / "a.spm")


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_but_never_crashes(spm: Path, data: st.DataObject) -> None:
    content = bytearray(spm.read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[position] = data.draw(st.integers(0, 255))
    del content[data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content)))) :]
    path = spm.with_name("damaged.spm")
    path.write_bytes(content)
    try:
        model = SentencePieceModel.load(path)
    except CheckpointError:
        return
    model.backend().encode("the river ½ ﬁ é")


def test_a_varint_and_a_length_without_end_are_refused(tmp_path: Path) -> None:
    for content in (b"\x0a\xff", b"\xff" * 20, b"\x0a\x05ab", b"\x0b", struct.pack("<B", 0x0D)):
        (tmp_path / "a.spm").write_bytes(content)
        with pytest.raises(CheckpointError, match="SentencePiece"):
            SentencePieceModel.load(tmp_path / "a.spm")


def test_a_character_map_that_points_out_of_itself_is_refused(spm: Path) -> None:
    content = bytearray(SentencePieceModel.load(spm).character_map)
    check_character_map(bytes(content))
    for damage in (content[:4], b"\xff\xff\xff\xff" + content[4:], content[:4] + b"\xff\xff\xff\x7f" + content[8:]):
        with pytest.raises(ValueError, match="character map"):
            check_character_map(bytes(damage))


def test_a_character_map_with_many_paths_to_nothing_is_read_in_time() -> None:
    """15 layers in which each node has all 95 printable characters below it, and no key ends."""
    units = [256 << 10] + [0] * (256 * 18 - 1)
    for layer in range(1, 16):
        for byte in range(32, 127):
            node = 256 * layer + byte
            units[node] = (node ^ 256 * (layer + 1)) << 10 | byte
    content = b"".join(unit.to_bytes(4, "little") for unit in [4 * len(units), *units]) + b"\0"
    assert CharacterMap(content)("abc") == "abc"


def test_a_character_map_with_a_very_long_replacement_is_refused(spm: Path) -> None:
    content = SentencePieceModel.load(spm).character_map
    check_character_map(content + 64 * b"a" + b"\0")
    with pytest.raises(ValueError, match="65 bytes, .*64"):
        check_character_map(content + 65 * b"a" + b"\0")


def test_a_damaged_character_map_in_a_tokenizer_file_is_refused(spm: Path) -> None:
    tokenizer, _ = load(spm)
    table = json.loads(tokenizer.to_json())
    assert Tokenizer.from_json(json.dumps(table)).encode(ENGLISH[0]) == tokenizer.encode(ENGLISH[0])
    mapped = bytearray(base64.b64decode(table["normalizer"]["normalizers"][0]["precompiled_charsmap"]))
    mapped[4:8] = b"\xff\xff\xff\x7f"
    table["normalizer"]["normalizers"][0]["precompiled_charsmap"] = base64.b64encode(mapped).decode()
    with pytest.raises(DataError, match="character map"):
        Tokenizer.from_json(json.dumps(table))


def test_runs_and_mixtures_have_the_same_pieces_by_merges(tmp_path: Path) -> None:
    """Of several merges that make the same piece, the leftmost comes first: in runs of a sign there are many."""
    pages = (Path(__file__).parents[2] / "docs").glob("*.md")
    lines = [line.strip() for page in sorted(pages) for line in page.read_text(encoding="utf-8").splitlines()]
    lines = [" ".join(line.split()) for line in lines if line.strip()]
    train_spm(lines, tmp_path / "a.spm", 1_500, model_type="bpe")
    tokenizer, reference = load(tmp_path / "a.spm")
    again = Tokenizer.from_json(tokenizer.to_json())
    rng = random.Random(1)
    runs = ["".join(rng.choice("-=.`a#| ") * rng.randint(1, 30) for _ in range(3)) for _ in range(300)]
    mixtures = ["".join(rng.choice("abnst☃") for _ in range(rng.randint(1, 20))) for _ in range(300)]
    for text in [*lines[:500], *runs, *mixtures]:
        expected = ids(tokenizer, reference, text)
        assert tokenizer.encode(text)[:-1] == expected, ascii(text)
    assert again.encode_all(lines[:50]) == tokenizer.encode_all(lines[:50])


def test_random_text_of_many_scripts_has_the_same_pieces(spm: Path) -> None:
    tokenizer, reference = load(spm)
    rng = random.Random(1)
    ranges = [(32, 127), (0xA0, 0x17F), (0x370, 0x52F), (0x3040, 0x30FF), (0xFF01, 0xFF5E), (0x2000, 0x206F)]
    for _ in range(500):
        text = "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 12)))
        assert tokenizer.encode(text)[:-1] == ids(tokenizer, reference, text), ascii(text)
