import json
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.errors import ConfigError, DataError, InputError
from allyouneed.text.backends import (
    bpe_backend,
    character_backend,
    codes_backend,
    symbol_backend,
    unigram_backend,
    word_backend,
)
from allyouneed.text.tokenizer import Tokenizer

LINES = [
    "A brown dog runs through the high grass.",
    "Ein brauner Hund läuft durch das hohe Gras.",
    "Two dogs ran; 2 cats didn't run.",
    "Zwei Hunde rannten, 14 Katzen rannten nicht.",
] * 3

BPE = Tokenizer(bpe_backend(LINES, vocab_size=330))


@given(st.text())
def test_byte_pairs_give_any_text_back(text: str) -> None:
    assert BPE.decode(BPE.encode(text)) == text


@given(st.text(alphabet="abc -"))
def test_characters_give_their_text_back(text: str) -> None:
    tokenizer = Tokenizer.characters("abc -")
    ids = tokenizer.encode(text)
    assert len(ids) == len(text) + 2
    assert tokenizer.decode(ids) == text


@given(st.text(alphabet="한글국가é\u0301e ḍ̇"))
def test_characters_taken_apart_give_their_composed_text_back(text: str) -> None:
    parts = sorted(set(unicodedata.normalize("NFD", "한글국가éḍ̇ ")))
    tokenizer = Tokenizer.from_json(Tokenizer(character_backend(parts, unknown=True, decomposed=True)).to_json())
    ids = tokenizer.encode(text)
    assert tokenizer.unk_id not in ids
    assert tokenizer.decode(ids) == tokenizer.decode_all([ids])[0] == unicodedata.normalize("NFC", text)


def test_a_sentence_stands_between_its_signs() -> None:
    ids = BPE.encode("A dog.")
    assert (ids[0], ids[-1]) == (BPE.sos_id, BPE.eos_id)
    assert BPE.encode("") == [BPE.sos_id, BPE.eos_id]


@pytest.mark.parametrize("name", ["<sos>", "<eos>", "<pad>"])
def test_the_name_of_a_sign_in_a_text_is_plain_text(name: str) -> None:
    ids = BPE.encode(f"a {name} b")
    assert not {BPE.sos_id, BPE.eos_id, BPE.pad_id} & set(ids[1:-1])
    assert BPE.decode(ids) == f"a {name} b"


def test_learning_merges_what_is_common() -> None:
    assert len(BPE) == 330
    assert "␣dog" in BPE.pieces(BPE.encode("A dog runs"))
    assert len(BPE.encode(LINES[0])) < len(LINES[0]) / 2


def test_learning_twice_gives_the_same_vocabulary(tmp_path: Path) -> None:
    BPE.save(tmp_path / "a.json")
    Tokenizer(bpe_backend(LINES, vocab_size=330)).save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


UNIGRAM_PROGRAM = """
import sys
from pathlib import Path
from typing import Any
from allyouneed.text.backends import unigram_backend
from allyouneed.text.tokenizer import Tokenizer
words = zip("abcdefgh" * 9, "xyzxz" * 20, "klmno" * 20)
texts = [f"{a}{b}{c} {c}{a} {chr(0x4e00 + i)}" for i, (a, b, c) in enumerate(words)]
tokenizer = Tokenizer(unigram_backend(texts, vocab_size=380))
tokenizer.save(Path(sys.argv[1]))
print(tokenizer.fingerprint(), Tokenizer.load(Path(sys.argv[1])).fingerprint())
"""


def test_unigram_pieces_are_the_same_in_every_process_and_after_a_file(tmp_path: Path) -> None:
    """Most letters here stand in one text only: the library scores those by chance."""
    files, fingerprints = set(), set()
    for number in range(3):
        path = tmp_path / f"{number}.json"
        done = subprocess.run([sys.executable, "-c", UNIGRAM_PROGRAM, path], capture_output=True, text=True, check=True)
        files.add(path.read_bytes())
        fingerprints |= set(done.stdout.split())
    assert (len(files), len(fingerprints)) == (1, 1)


def test_vocabularies_that_number_their_tokens_otherwise_have_other_fingerprints() -> None:
    signs = ("<pad>", "<sos>", "<eos>", "<unk>")
    orders = (None, [*signs, "a", "b"], [*signs, "b", "a"])
    fingerprints = {Tokenizer(character_backend("ab"), order).fingerprint() for order in orders}
    assert len(fingerprints) == 3


@pytest.mark.parametrize("tokenizer", [BPE, Tokenizer.characters("abc<>")])
def test_a_saved_tokenizer_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    text = "abc<c>b"
    assert again.encode(text) == tokenizer.encode(text)
    assert (again.pad_id, again.sos_id, again.eos_id) == (
        tokenizer.pad_id,
        tokenizer.sos_id,
        tokenizer.eos_id,
    )


def test_many_are_encoded_as_one() -> None:
    assert BPE.encode_all(LINES) == [BPE.encode(line) for line in LINES]
    assert BPE.decode_all(BPE.encode_all(LINES)) == LINES


def test_pieces_show_what_ids_stand_for() -> None:
    assert Tokenizer.characters("ab ").pieces([0, 2, 1, 4]) == ["a", "␣", "b", "<eos>"]
    with pytest.raises(InputError, match="id -1 .*6"):
        Tokenizer.characters("ab ").pieces([-1])
    with pytest.raises(InputError, match=r"6; got \[-1\]"):
        Tokenizer.characters("ab ").decode([-1])
    with pytest.raises(InputError, match="id 6 .*6"):
        Tokenizer.characters("ab ").pieces([6])


def test_a_character_outside_the_vocabulary_is_refused_by_place_and_line() -> None:
    tokenizer = Tokenizer.characters("abc")
    with pytest.raises(InputError, match="'x' .*3 .*'abxa'.*'abc'") as refused:
        tokenizer.encode_all(["aaa", "abxa"])
    assert refused.value.line == 2


def test_a_message_shows_no_more_of_a_long_text_and_of_a_long_alphabet_than_one_can_read() -> None:
    tokenizer = Tokenizer.characters(chr(0x4E00 + number) for number in range(3_000))
    with pytest.raises(InputError, match="'x' at position 5001") as refusal:
        tokenizer.encode("\u4e00" * 5_000 + "x")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("tokenizer", [BPE, Tokenizer(unigram_backend(LINES, vocab_size=330))], ids=["bpe", "unigram"])
def test_half_of_a_surrogate_pair_is_refused_by_its_line(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match="surrogate pair") as refused:
        tokenizer.encode_all(["a", "b \ud800"])
    assert refused.value.line == 2


def test_a_vocabulary_that_cannot_hold_the_bytes_is_refused() -> None:
    with pytest.raises(ConfigError, match="vocab_size .*259 .*got 100"):
        Tokenizer(bpe_backend(LINES, vocab_size=100))


def test_files_that_are_no_tokenizer_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(DataError, match=r"tokenizer\.json"):
        Tokenizer.load(path)
    path.write_text("{}")
    with pytest.raises(DataError, match="tokenizer.json"):
        Tokenizer.load(path)


def edited(tokenizer: Tokenizer, path: Path, **change: object) -> Path:
    """Save a tokenizer with some parts of its file changed."""
    tokenizer.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    return path


TWO_BLANKS = {"type": "Replace", "pattern": {"String": " "}, "content": "  "}
# The sign has three blanks in its compatibility mapping, so that both parts in turn have three times as many each time.
FOR_A_BLANK = {
    "type": "Replace",
    "pattern": {"String": " "},
    "content": "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}",
}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
FRAME: dict[str, Any] = {"type": "TemplateProcessing", "pair": [], "special_tokens": {}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"normalizer": {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}},
            "normalizer .*pattern",
        ),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [{"type": "BertNormalizer"}]}},
            "'BertNormalizer'",
        ),
        (
            {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a*)*b"}, "behavior": "Isolated", "invert": 0}},
            "pre_tokenizer",
        ),
        (
            {"decoder": {"type": "Sequence", "decoders": [{"type": "CTC"}]}},
            "'CTC'",
        ),
        ({"truncation": {"max_length": 3}}, "truncation .*safely"),
        (
            {"model": {"type": "WordPiece", "vocab": {}}},
            "'WordPiece', .*BPE, .*WordLevel",
        ),
        ({"model": {"type": "BPE", "continuing_subword_prefix": "##"}}, "continuing_subword_prefix='##'"),
        ({"model": {"type": "BPE", "dropout": 0.5}}, "dropout=0.5"),
        ({"decoder": {"type": "Strip", "content": " ", "start": 0, "stop": 1}}, "stop=1"),
        ({"model": 3}, "got 3"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": 10 * [TWO_BLANKS]}},
            "normalizer .*make",
        ),
        (
            {"normalizer": {"type": "Sequence", "normalizers": 3 * [FOR_A_BLANK, {"type": "NFKC"}]}},
            "1,000 times",
        ),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": 10 * [BYTES]}}, "pre_tokenizer .*text more"),
        ({"decoder": {"type": "Sequence", "decoders": 10 * [TWO_BLANKS]}}, "decoder .*make"),
        ({"normalizer": {"type": "Prepend", "prepend": 9 * "a"}}, "adds 'aaaaaaaaa'; .*8"),
        ({"post_processor": {**FRAME, "single": 9 * [{"Sequence": {"id": "A", "type_id": 0}}]}}, "repeats a text"),
    ],
)
def test_a_file_with_parts_that_no_vocabulary_of_ours_has_is_refused(
    tmp_path: Path, change: dict[str, object], why: str
) -> None:
    with pytest.raises(DataError, match=why):
        Tokenizer.load(edited(BPE, tmp_path / "tokenizer.json", **change))


@pytest.mark.parametrize(
    "tokenizer",
    [
        BPE,
        Tokenizer.characters("abc"),
        Tokenizer.characters("abc;P", tags=[";P"], unknown=True),
        Tokenizer(symbol_backend(LINES)),
        Tokenizer(word_backend(LINES, vocab_size=30)),
        Tokenizer(unigram_backend(LINES, vocab_size=310)),
    ],
)
def test_every_vocabulary_of_ours_can_be_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode("abc") == tokenizer.encode("abc")


def test_the_parts_of_widespread_tokenizers_together_do_not_make_a_text_too_long(tmp_path: Path) -> None:
    kinds = ("NFKD", "StripAccents", "Lowercase")
    quotes = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    normalizer = {"type": "Sequence", "normalizers": [*({"type": kind} for kind in kinds), quotes, *3 * [TWO_BLANKS]]}
    tokenizer = Tokenizer.load(edited(BPE, tmp_path / "tokenizer.json", normalizer=normalizer))
    assert tokenizer.encode("A") == tokenizer.encode("a")


def test_the_unknown_token_may_come_first(tmp_path: Path) -> None:
    vocabulary = {name: i for i, name in enumerate(["<unk>", "<pad>", "<sos>", "<eos>", "A", "dog"])}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    words = Tokenizer(word_backend(LINES, vocab_size=30))
    tokenizer = Tokenizer.load(
        edited(words, tmp_path / "tokenizer.json", model=model, added_tokens=[], normalizer=None)
    )
    assert (len(tokenizer), tokenizer.unk_id) == (6, 0)
    assert tokenizer.encode("A dog")[1] == 4


def test_merges_with_the_unknown_token_first_are_refused(tmp_path: Path) -> None:
    """All ids after `<unk>` are read as it: at the beginning it would make every word unknown."""
    codes = Tokenizer(codes_backend(CODES, ["dog runs"], all_symbols=False))
    model = json.loads(codes.to_json())["model"]
    names = ["<unk>", *(name for name in sorted(model["vocab"], key=model["vocab"].get) if name != "<unk>")]
    model["vocab"] = {name: i for i, name in enumerate(names)}
    with pytest.raises(InputError, match="<unk> .*0"):
        Tokenizer.load(edited(codes, tmp_path / "tokenizer.json", model=model, added_tokens=[]))


def test_a_unigram_vocabulary_that_cannot_hold_the_alphabet_is_refused() -> None:
    letters = "".join(chr(0x4E00 + i) for i in range(300))
    with pytest.raises(ConfigError, match="vocab_size=300"):
        Tokenizer(unigram_backend([letters] * 3, vocab_size=300))


CODES = ["#version: 0.2", "o g</w>", "d og</w>", "d o", "do t</w>"]


def test_a_frequent_word_that_is_no_part_of_another_is_one_unigram() -> None:
    tokenizer = Tokenizer(unigram_backend(["alpha beta"] * 1000, vocab_size=400))
    assert tokenizer.pieces(tokenizer.encode("beta alpha")) == ["<sos>", "␣beta", "␣alpha", "<eos>"]


def test_given_merges_spell_what_subword_nmt_spells() -> None:
    """By hand: d+og, r+u+n+s; `do` is made only on the way to dot, which no text holds, so it is unknown."""
    tokenizer = Tokenizer(codes_backend(CODES, ["dog runs", "dog"], all_symbols=False))
    assert tokenizer.pieces(tokenizer.encode("dog runs")[1:-1]) == ["dog␣", "r", "u", "n", "s␣"]
    assert tokenizer.pieces(range(len(tokenizer))) == [
        "<pad>", "<sos>", "<eos>", "dog␣", "n", "r", "s␣", "u", "<unk>",
    ]  # fmt: skip
    assert tokenizer.pieces(tokenizer.encode("dot dos")[1:-1]) == ["<unk>", "<unk>", "s␣"]
    assert tokenizer.pieces(tokenizer.encode("☃ run")[1:-1]) == ["<unk>", "r", "u", "<unk>"]


def test_words_of_given_merges_come_back_with_single_blanks(tmp_path: Path) -> None:
    Tokenizer(codes_backend(CODES, ["a dog runs", "<pad> ."], all_symbols=False)).save(tmp_path / "tokenizer.json")
    tokenizer = Tokenizer.load(tmp_path / "tokenizer.json")
    assert tokenizer.decode(tokenizer.encode("a  dog runs <pad> .")) == "a dog runs <pad> ."
    assert max(tokenizer.encode("dot ☃")) < len(tokenizer)


@pytest.mark.parametrize(
    ("codes", "why"),
    [
        ([], "'#version: 0.2'"),
        (["o g</w>"], "'#version: 0.2'.*got"),
        (["#version: 0.2", "a b", "a"], "line 3 .*codes .*symbols.*got 'a'"),
    ],
)
def test_codes_of_another_kind_are_refused(codes: list[str], why: str) -> None:
    with pytest.raises(DataError, match=why):
        Tokenizer(codes_backend(codes, ["a"], all_symbols=False))


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
SPLITS = [METASPACE, {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}, None]


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("model", ["WordLevel", "BPE", "Unigram"])
@pytest.mark.parametrize("normalizer", [None, {"type": "Lowercase"}], ids=str)
def test_a_vocabulary_without_an_unknown_token_encodes_or_refuses(
    model: str, split: dict[str, Any] | None, normalizer: dict[str, Any] | None
) -> None:
    """The library raises bare exceptions for what it cannot encode."""
    table = json.loads(Tokenizer.characters("aAb▁").to_json())
    ids = table["model"]["vocab"]
    vocabulary = [[name, -1.0] for name in sorted(ids, key=ids.get)] if model == "Unigram" else ids
    table |= {"model": {"type": model, "vocab": vocabulary}, "pre_tokenizer": split, "normalizer": normalizer}
    table["model"] |= {"BPE": {"merges": []}, "WordLevel": {"unk_token": "[UNK]"}, "Unigram": {"unk_id": None}}[model]
    try:
        tokenizer = Tokenizer.from_json(json.dumps(table))
    except DataError:
        return
    for text in ("ab", "a b", "☃", "A", "▁", ""):
        with suppress(InputError):
            ids = tokenizer.encode(text)
            assert max(ids) < len(tokenizer)
            assert tokenizer.decode(ids) or not text.strip(" ▁")  # no character is lost
        with suppress(InputError, ConfigError):
            assert max(tokenizer.with_sampling(strength=0.5, seed=1)(text, 1)) < len(tokenizer)
