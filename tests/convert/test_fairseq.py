"""The import of fairseq's transformer, beside a plain definition of what it computes."""

import argparse
import pickle
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

from allyouneed.apps.convert.imports import import_checkpoint
from allyouneed.bundle import Bundle
from allyouneed.errors import CheckpointError
from allyouneed.translator import Translator
from allyouneed.translator.generation import GenerationRequest
from foreign_checkpoints import TEXTS, State, fairseq_logits, write_fairseq


def rows(bundle: Bundle, symbols: list[str]) -> list[int]:
    """For each of our ids the id of the checkpoint: tokens that go on are spelled without `@@`, others with `</w>`."""
    names = dict(zip(("<s>", "<pad>", "</s>", "<unk>"), ("<sos>", "<pad>", "<eos>", "<unk>"), strict=True))
    in_pieces = bundle.target_tokenizer.symbols is not None

    def ours(token: str) -> str:
        if token in names or in_pieces:
            return names.get(token, token)
        return token.removesuffix("@@") if token.endswith("@@") else f"{token}</w>"

    foreign = {ours(token): i for i, token in enumerate(symbols)}
    return [foreign[name] for name in bundle.target_tokenizer.names()]


@torch.inference_mode()
def greedy(state: State, source: list[int], *, steps: int, **settings: Any) -> list[int]:
    """The most probable target by fairseq's rules: begun by `</s>`, not ended at once, and without padding."""
    target = [2]
    for step in range(steps):
        logits = fairseq_logits(state, torch.tensor([source]), torch.tensor([target]), **settings)[0, -1]
        logits[1] = -torch.inf
        logits[2] -= torch.inf if step == 0 else 0.0
        target.append(int(logits.argmax()))
        if target[-1] == 2:
            break
    return target


@pytest.mark.parametrize(
    "model",
    [
        {"tied": "all"},
        {"tied": "target", "pre": True, "learned": True, "newer": True},
        {"tied": "none", "learned": True, "subwords": "spm"},
        {"tied": "all", "pre": True, "subwords": "spm", "newer": True},
    ],
)
@torch.inference_mode()
def test_logits_and_greedy_translations_are_those_of_fairseq(model: dict[str, Any], tmp_path: Path) -> None:
    state, symbols = write_fairseq(tmp_path / "fairseq", **model)
    bundle = import_checkpoint(str(tmp_path / "fairseq"), str(tmp_path / "bundle"))
    bundle = Bundle.load(tmp_path / "bundle")
    assert bundle.model.config.tied_embeddings == model["tied"]
    assert bundle.languages == ("en", "it")
    order, pre = rows(bundle, symbols), model.get("pre", False)
    source = [bundle.source_tokenizer.encode(TEXTS[0])]
    target = [bundle.target_tokenizer.encode(TEXTS[1])[:-1]]
    foreign = [torch.tensor([[order[i] for i in ids] for ids in side]) for side in (source, target)]
    assert foreign[0][0, -1] == foreign[1][0, 0] == 2  # </s> ends the source and begins the target
    expected = fairseq_logits(state, *foreign, pre=pre)[..., order]
    torch.testing.assert_close(bundle.model(torch.tensor(source), torch.tensor(target)), expected, rtol=1e-4, atol=1e-4)
    generator = Translator(bundle).using(beam=1, max_length=12)._generator
    for text in TEXTS[:3]:
        ids = bundle.source_tokenizer.encode(text)
        ((best, *_),), _ = generator.generate([GenerationRequest(ids, [], [])])
        expected_ids = greedy(state, [order[i] for i in ids], steps=12, pre=pre)
        assert [order[i] for i in best.ids] == [i for i in expected_ids[1:] if i != 2]


def test_merges_split_words_as_subword_nmt_does(tmp_path: Path) -> None:
    write_fairseq(tmp_path / "fairseq")
    bundle = import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")
    tokenizer = bundle.source_tokenizer
    ids = tokenizer.encode("the river opens")
    assert [tokenizer.names()[i] for i in ids] == [
        "the</w>", "r", "i", "v", "er</w>", "open", "s</w>", "<eos>",
    ]  # fmt: skip
    assert tokenizer.decode(ids) == "the river opens"
    assert [tokenizer.names()[i] for i in tokenizer.encode("éa")] == ["<unk>", "a</w>", "<eos>"]


def test_pieces_and_ids_are_those_of_sentencepiece_and_the_dictionary(tmp_path: Path) -> None:
    _, symbols = write_fairseq(tmp_path / "fairseq", subwords="spm")
    bundle = import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "fairseq/sentencepiece.bpe.model"))
    for text in TEXTS:
        expected = [symbols.index(p) if p in symbols else 3 for p in model.encode(text, out_type=str)]
        assert bundle.source_tokenizer.encode(text) == [*expected, 2]
        assert bundle.target_tokenizer.encode(text) == [2, *expected, 2]


def test_a_model_without_scaled_embeddings_keeps_its_logits(tmp_path: Path) -> None:
    state, symbols = write_fairseq(tmp_path / "fairseq", changed={"no_scale_embedding": True})
    bundle = import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")
    assert bundle.model.config.tied_embeddings == "none"
    order = rows(bundle, symbols)
    ours = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[2, 9, 10]])
    foreign = [torch.tensor(order)[ids] for ids in ours]
    expected = fairseq_logits(state, *foreign, pre=False, scale=False)[..., order]
    torch.testing.assert_close(bundle.model(*ours), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"arch": "lightconv"}, "the model is 'lightconv'; only fairseq's transformer can be imported"),
        ({"no_cross_attention": True}, "no_cross_attention=True; only False can be imported"),
        ({"layernorm_embedding": True}, "layernorm_embedding=True"),
        ({"decoder_normalize_before": True}, "the same normalize_before; got False and True"),
        ({"decoder_attention_heads": 4}, "the same attention_heads; got 2 and 4"),
        ({"activation_fn": "gelu_accurate"}, "activation_fn must be one of relu, gelu, swish; got 'gelu_accurate'"),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "d_model must be a multiple of heads"),
        ({"max_source_positions": 10**12, "max_target_positions": 10**12}, "max_length must be"),
        ({"source_lang": "../../etc/x"}, "must name its languages"),
    ],
)
def test_what_cannot_be_expressed_is_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_fairseq(tmp_path / "fairseq", changed={key: value for key, value in changed.items() if "lang" not in key})
    if "source_lang" in changed:
        state = torch.load(tmp_path / "fairseq/model.pt", weights_only=False)
        state["args"].source_lang = changed["source_lang"]
        torch.save(state, tmp_path / "fairseq/model.pt")
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def rewrite(folder: Path, **changed: torch.Tensor) -> None:
    state = torch.load(folder / "model.pt", weights_only=False)
    state["model"] = {**state["model"], **{name.replace("__", "."): tensor for name, tensor in changed.items()}}
    torch.save(state, folder / "model.pt")


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("encoder__layernorm_embedding__weight", torch.ones(16), "have 'encoder.layernorm_embedding.weight', which no"),
        ("encoder__layers__0__fc1__bias", torch.ones(7), r"fc1.bias must have shape \(24,\); got \(7,\)"),
        ("encoder__layers__0__fc1__bias", torch.full((24,), torch.nan), "fc1.bias has numbers that are not finite"),
        ("encoder__embed_tokens__weight", torch.zeros(1).expand(10**9, 16), "must have shape"),
        ("decoder__version", torch.ones(1), "the decoder is of an early version of fairseq"),
        ("encoder__layers__9__fc1__bias", torch.ones(24), "the weights lack encoder.layers.2"),
    ],
)
def test_weights_that_cannot_be_are_refused(name: str, tensor: torch.Tensor, message: str, tmp_path: Path) -> None:
    write_fairseq(tmp_path / "fairseq", tied="none", pre=True)
    rewrite(tmp_path / "fairseq", **{name: tensor})
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")


def test_weights_whose_numbers_are_not_stored_are_refused(tmp_path: Path) -> None:
    """All have the right shapes, but one number each, with strides of 0."""
    write_fairseq(tmp_path / "fairseq")
    state = torch.load(tmp_path / "fairseq/model.pt", weights_only=False)
    state["model"] = {name: torch.ones(()).expand(tensor.shape) for name, tensor in state["model"].items()}
    torch.save(state, tmp_path / "fairseq/model.pt")
    with pytest.raises(CheckpointError, match="the weights have more than 4 times the numbers stored"):
        import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")


class Trap:
    """What a stranger's pickle may hold: reading it would make a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self._folder,)


@pytest.mark.parametrize("where", ["args", "cfg", "extra_state"])
def test_nothing_that_is_pickled_is_run(where: str, tmp_path: Path) -> None:
    write_fairseq(tmp_path / "fairseq")
    state = torch.load(tmp_path / "fairseq/model.pt", weights_only=False)
    state[where] = argparse.Namespace(trap=Trap(tmp_path / "trap"))
    torch.save(state, tmp_path / "fairseq/model.pt")
    with pytest.raises(CheckpointError, match="holds more than tensors and settings: its pickle names"):
        import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")
    (tmp_path / "fairseq/model.pt").write_bytes(pickle.dumps({"model": Trap(tmp_path / "trap")}))
    with pytest.raises(CheckpointError, match="is no archive of PyTorch"):
        import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("dict.en.txt", "a 1\nb\n", "line 2, must be a token and its count; got 'b'"),
        ("dict.en.txt", "a 1\na 2\n", "has a token twice"),
        ("dict.en.txt", "<sos> 1\n", "has a token <sos>, which is the name of another"),
        ("bpecodes", "a b c d\n", "bpecodes cannot be imported"),
        ("spm.model", "x", "must have either .* it has both"),
        ("model.pt", "PK", "is no archive of PyTorch"),
    ],
)
def test_damaged_files_are_refused_in_a_line(file: str, content: str, message: str, tmp_path: Path) -> None:
    write_fairseq(tmp_path / "fairseq")
    (tmp_path / "fairseq" / file).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=message) as refused:
        import_checkpoint(tmp_path / "fairseq", tmp_path / "bundle")
    assert "\n" not in str(refused.value)
