"""Vocabularies of other programs: the same ids, and our special tokens."""

import json
import re
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors

from allyouneed.errors import DataError
from allyouneed.text.backends import SPECIALS, UNK, bpe_backend
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.tokenizer_adaptation import adapt_tokenizer
from foreign_tokenizers import LINES, UNUSUAL, foreign_tokenizers

CHANGES = {
    "byte-level BPE": [
        "'<|endoftext|>' is <eos>, with id 0", "<pad> was added, with id 295", "<sos> was added, with id 296",
    ],
    "words": [
        "'[PAD]' is <pad>, with id 3", "'[CLS]' is <sos>, with id 1", "'[SEP]' is <eos>, with id 2",
        "'[UNK]' is <unk>, with id 0",
    ],
    "unigram": ["'</s>' is <eos>, with id 1", "<sos> was added, with id 31"],
    "BPE": ["'<s>' is <sos>, with id 1", "'</s>' is <eos>, with id 2", "<pad> was added, with id 60"],
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_texts_have_the_ids_that_the_library_gives_them_between_our_special_tokens(kind: str) -> None:
    reference = foreign_tokenizers()[kind]
    text, changes = adapt_tokenizer(reference.to_str())
    ours = Tokenizer.from_json(text)
    assert changes == CHANGES[kind]
    bare = without_frame(reference)
    for line in LINES + UNUSUAL:
        ids = bare.encode(line, add_special_tokens=False).ids
        assert ours.encode(line) == [ours.sos_id, *ids, ours.eos_id]
        expected = bare.decode(ids, skip_special_tokens=False)
        assert ours.decode(ours.encode(line)) == expected.replace("[UNK]", "<unk>")
    special = {i for i in (ours.pad_id, ours.sos_id, ours.eos_id, ours.unk_id) if i is not None}
    kept = {name: i for name, i in reference.get_vocab().items() if i not in special}
    assert kept.items() <= {name: i for i, name in enumerate(ours.names())}.items()
    assert len(special) == (3 if kind == "byte-level BPE" else 4)


@pytest.mark.parametrize("kind", CHANGES)
def test_names_of_special_tokens_in_a_text_are_plain_text(kind: str) -> None:
    tokenizer = Tokenizer.from_json(adapt_tokenizer(foreign_tokenizers()[kind].to_str())[0])
    for text in ("a <pad> dog", "<eos>", "dog<sos><eos>", "</s> [SEP] <|endoftext|> <s>"):
        inside = tokenizer.encode(text)[1:-1]
        assert not {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id} & set(inside)


def without_frame(tokenizer: Backend) -> Backend:
    """Remove padding, truncation and special tokens."""
    bare = Backend.from_str(tokenizer.to_str())
    bare.no_padding()
    bare.no_truncation()
    bare.post_processor = processors.TemplateProcessing(single="$0", special_tokens=[])
    bare.encode_special_tokens = True
    return bare


@pytest.mark.parametrize("kind", CHANGES)
def test_what_was_adapted_is_saved_and_loaded_as_one_of_ours(kind: str) -> None:
    text, _ = adapt_tokenizer(foreign_tokenizers()[kind].to_str())
    assert adapt_tokenizer(text) == (text, [])
    tokenizer = Tokenizer.from_json(text)
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.fingerprint() == tokenizer.fingerprint()
    assert again.encode_all(LINES) == tokenizer.encode_all(LINES)


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("byte-level BPE", "ByteLevel with use_regex=True"),
        ("words", "StripAccents"),
        ("unigram", ""),
        ("BPE", ""),
    ],
)
def test_a_part_that_only_the_library_has_is_named(kind: str, part: str) -> None:
    foreign_part = Tokenizer.from_json(adapt_tokenizer(foreign_tokenizers()[kind].to_str())[0]).foreign_part()
    assert foreign_part.endswith(part)
    assert bool(foreign_part) == bool(part)


SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"pre_tokenizer": SPLIT | {"behavior": "Isolated"}}, "its pre_tokenizer is Split with behavior='Isolated'"),
        ({"pre_tokenizer": SPLIT | {"invert": True}}, "its pre_tokenizer is Split with invert=True"),
        ({"pre_tokenizer": METASPACE}, ""),
        (
            {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT, METASPACE]}},
            "Metaspace with prepend_scheme='first' after Split",
        ),
        (
            {"pre_tokenizer": METASPACE, "normalizer": {"type": "Strip", "strip_left": True, "strip_right": False}},
            "Metaspace with prepend_scheme='first' after Strip",
        ),
    ],
)
def test_a_setting_that_only_the_library_has_is_named(changes: dict[str, Any], part: str) -> None:
    table = json.loads(adapt_tokenizer(foreign_tokenizers()["BPE"].to_str())[0])
    foreign_part = Tokenizer.from_json(json.dumps(table | changes)).foreign_part()
    assert foreign_part.endswith(part)
    assert bool(foreign_part) == bool(part)


@pytest.mark.parametrize("made", [Tokenizer.characters("abc"), Tokenizer(bpe_backend(LINES, vocab_size=300))])
def test_one_of_ours_is_unchanged(made: Tokenizer) -> None:
    assert adapt_tokenizer(made.to_json()) == (made.to_json(), [])
    assert made.foreign_part() == ""


def test_a_unigram_model_without_an_unknown_token_gets_one() -> None:
    table = json.loads(foreign_tokenizers()["unigram"].to_str())
    table["model"] |= {"unk_id": None, "vocab": [*table["model"]["vocab"][3:]]}
    text, changes = adapt_tokenizer(json.dumps(table | {"added_tokens": []}))
    assert re.match("<unk> .* 28$", changes[0])
    tokenizer = Tokenizer.from_json(text)
    assert tokenizer.unk_id == 28
    assert 28 in tokenizer.encode("☃")
    assert [tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id] == [29, 30, 31]


def changed(**model: Any) -> str:
    table = json.loads(foreign_tokenizers()["BPE"].to_str())
    return json.dumps(table | {"model": table["model"] | model})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(vocab={"<unk>": 0, "<s>": 1, "</s>": 2, "a": 4}, merges=[]), "'a' .*id 4; 4 tokens"),
        (changed(vocab={"<unk>": 0, "<s>": 1, "</s>": 2, "a": 2}, merges=[]), "'</s>' .*'a' .*id, 2"),
        (changed(vocab={"<unk>": 0, "<s>": 3, "</s>": 2, "a": 1}, merges=[]), "'<s>' .*ids, 3 .*1"),
        (changed(vocab={"<unk>": 0, "<s>": 1, "</s>": 2, "a": "3"}, merges=[]), "'a' .*id '3'"),
        (changed(vocab={}), "no vocabulary"),
        ("[]", r"tokenizer\.json"),
        (json.dumps({"model": {"vocab": [1]}}), r"tokenizer\.json"),
        (json.dumps({"model": {"vocab": [["a", 0.0]], "unk_id": 7}}), "unk_id .*7, outside .*1 pieces"),
    ],
)
def test_ids_that_cannot_be_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        adapt_tokenizer(text)


def test_a_file_with_the_names_of_our_tokens_but_without_them_around_a_text_gets_them() -> None:
    ids = {name: number for number, name in enumerate(["the", "house", UNK, *SPECIALS])}
    backend = Backend(models.WordLevel(ids, unk_token=UNK))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.add_special_tokens(list(SPECIALS))
    backend.enable_truncation(2)
    tokenizer = Tokenizer.from_json(adapt_tokenizer(backend.to_str())[0])
    encoded = tokenizer.encode("the house the house")
    assert (encoded[0], encoded[-1]) == (tokenizer.sos_id, tokenizer.eos_id)
    assert tokenizer.content(encoded) == [0, 1, 0, 1]
