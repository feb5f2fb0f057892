"""The import of JoeyNMT's Transformer, beside a plain definition of what it computes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.apps.convert.imports import import_checkpoint
from allyouneed.bundle import Bundle
from allyouneed.errors import CheckpointError
from allyouneed.translator import Translator
from foreign_checkpoints import TEXTS, joeynmt_logits, write_joeynmt


def rows(bundle: Bundle, symbols: list[str]) -> list[int]:
    """For each of our ids the id of the checkpoint."""
    names = {"<s>": "<sos>", "</s>": "<eos>", "<pad>": "<pad>", "<unk>": "<unk>"}
    in_pieces = bundle.target_tokenizer.symbols is not None

    def ours(token: str) -> str:
        if token in names or in_pieces:
            return names.get(token, token)
        return token.removesuffix("@@") if token.endswith("@@") else f"{token}</w>"

    foreign = {ours(token): i for i, token in enumerate(symbols)}
    return [foreign[name] for name in bundle.target_tokenizer.names()]


@pytest.mark.parametrize(
    "model",
    [
        {"tied": "all"},
        {"tied": "target", "pre": False, "subwords": "spm"},
        {"tied": "none", "subwords": "spm"},
        {"tied": "all", "pre": False, "scale": False},
    ],
)
@torch.inference_mode()
def test_logits_are_those_of_joeynmt(model: dict[str, Any], tmp_path: Path) -> None:
    state, symbols = write_joeynmt(tmp_path / "joeynmt", **model)
    import_checkpoint(tmp_path / "joeynmt", tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle")
    assert bundle.model.config.tied_embeddings == (model["tied"] if model.get("scale", True) else "none")
    assert bundle.languages == ("en", "it")
    assert (bundle.decode.beam, bundle.decode.alpha, bundle.decode.length_penalty) == (5, 1.0, "gnmt")
    assert (bundle.decode.min_length, bundle.decode.no_repeat_ngram_size) == (2, 0)  # never an empty translation
    order = rows(bundle, symbols)
    source = [bundle.source_tokenizer.encode(TEXTS[0])]
    target = [bundle.target_tokenizer.encode(TEXTS[1])[:-1]]
    foreign = [torch.tensor([[order[i] for i in ids] for ids in side]) for side in (source, target)]
    assert foreign[0][0, -1] == 3
    assert foreign[0][0, 0] != 2 == foreign[1][0, 0]  # <s> begins the target alone
    expected = joeynmt_logits(state, *foreign, pre=model.get("pre", True), scale=model.get("scale", True))[..., order]
    torch.testing.assert_close(bundle.model(torch.tensor(source), torch.tensor(target)), expected, rtol=1e-4, atol=1e-4)
    assert isinstance(Translator(bundle)(TEXTS[2]), str)


def test_pieces_that_the_vocabulary_lacks_are_never_used(tmp_path: Path) -> None:
    """JoeyNMT restricts the SentencePiece model to its vocabulary: a word is then made of other pieces."""
    write_joeynmt(tmp_path / "joeynmt", subwords="spm", tied="none")
    whole = import_checkpoint(tmp_path / "joeynmt", tmp_path / "whole").source_tokenizer
    path = tmp_path / "joeynmt/src_vocab.txt"
    symbols = path.read_text(encoding="utf-8").split("\n")[:-1]
    longest = max(symbols[4:], key=len)
    path.write_text("\n".join("other" if token == longest else token for token in symbols) + "\n", encoding="utf-8")
    restricted = import_checkpoint(tmp_path / "joeynmt", tmp_path / "bundle").source_tokenizer
    text = longest.removeprefix("▁")
    assert whole.encode(text) == [symbols.index(longest), 3]
    ids = restricted.encode(text)
    assert len(ids) > 2
    assert "".join(symbols[i] for i in ids[:-1]) == longest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"changed": {"type": "recurrent"}}, "the encoder has type='recurrent'; only transformer"),
        ({"changed": {"alpha": 0.8}}, "the encoder has alpha=0.8, a factor of residual connections"),
        ({"changed": {"layer_norm": "post"}}, "has layer_norm='post', and its weights have a norm after the last"),
        ({"changed": {"activation": "tanh"}}, "activation must be one of relu, gelu, swish; got 'tanh'"),
        ({"changed": {"num_heads": 3}}, "d_model must be a multiple of heads"),
        ({"testing": {"repetition_penalty": 1.2}}, "has repetition_penalty=1.2 in testing, which has no equal"),
        ({"side": {"level": "char"}}, "data.src has level='char'"),
        ({"side": {"tokenizer_cfg": {}}}, "must name the file codes in tokenizer_cfg"),
        ({"side": {"tokenizer_cfg": {"codes": "../../../etc/passwd"}}}, "joeynmt/passwd cannot be read"),
    ],
)
def test_what_cannot_be_expressed_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_joeynmt(tmp_path / "joeynmt", **changes)
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "joeynmt", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_positions_of_another_kind_are_refused(tmp_path: Path) -> None:
    write_joeynmt(tmp_path / "joeynmt")
    state = torch.load(tmp_path / "joeynmt/best.ckpt", weights_only=False)
    state["model_state"]["encoder.pe.pe"] += 0.01
    torch.save(state, tmp_path / "joeynmt/best.ckpt")
    with pytest.raises(CheckpointError, match=r"encoder\.pe\.pe are not the sines and cosines of JoeyNMT"):
        import_checkpoint(tmp_path / "joeynmt", tmp_path / "bundle")
