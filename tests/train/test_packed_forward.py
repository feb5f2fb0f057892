"""A batch of real tokens alone is held equal to the padded batch that goes through the model."""

import sys
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig
from allyouneed.data.batch import Batch
from allyouneed.errors import InputError
from allyouneed.nn import Transformer
from allyouneed.nn import attention as dense_attention
from allyouneed.nn import packed as packed_file
from allyouneed.nn.packed import PackedMask, PackedSentences
from allyouneed.train.packed_forward import can_pack, pack_batch, packed_hidden_states

CONFIG = ModelConfig(
    vocab_size=17, d_model=24, d_ff=40, heads=3, encoder_layers=2, decoder_layers=2, dropout=0.0, max_length=20
)
SOURCE = torch.tensor([[1, 5, 6, 7, 2], [1, 4, 2, 0, 0], [1, 9, 9, 2, 0], [2, 0, 0, 0, 0]])
TARGET = torch.tensor(
    [[1, 6, 5, 3, 8, 9, 4, 2], [1, 4, 2, 0, 0, 0, 0, 0], [1, 3, 7, 2, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0, 0]]
)
BATCH = Batch(SOURCE, TARGET)


def trained(model: Transformer, vectors: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The vectors of the real tokens, and the gradients of a function of them."""
    model.zero_grad()
    weights = torch.arange(1, vectors.size(-1) + 1) / vectors.size(-1)
    (vectors * weights).square().sum().backward()  # type: ignore[no-untyped-call]
    return vectors.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def compare(config: ModelConfig, dtype: torch.dtype) -> dict[str, tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    model = Transformer(config).train()
    fast, gradients = trained(model, packed_hidden_states(model, pack_batch(BATCH, model), dtype))
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        slow = model.hidden_states(SOURCE, BATCH.target_in)
    exact, expected = trained(model, slow.float()[BATCH.target_out != 0])
    assert gradients.keys() == expected.keys()
    return {"vectors": (fast, exact)} | {name: (gradients[name], expected[name]) for name in expected}


OTHERS = [
    {},
    {"norm": "pre", "activation": "gelu", "positions": "learned"},
    {"tied_embeddings": "none", "d_k": 4, "d_v": 5, "projection_bias": True},
    {"positions": "rotary", "query_key_norm": True},
]


@pytest.mark.parametrize("changes", OTHERS)
def test_vectors_and_gradients_are_those_of_the_model(changes: dict[str, object]) -> None:
    for name, (fast, exact) in compare(replace(CONFIG, **changes), torch.float32).items():  # type: ignore[arg-type]
        torch.testing.assert_close(fast, exact, atol=2e-4, rtol=1e-4, msg=name)


def test_in_bfloat16_they_differ_by_rounding() -> None:
    for name, (fast, exact) in compare(CONFIG, torch.bfloat16).items():
        if not name.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone
            assert (fast - exact).norm() < 0.05 * exact.norm(), name


def test_packing_keeps_the_tokens_and_knows_their_sentences() -> None:
    packed = BATCH.pack(0, 0)
    assert packed.source.tolist() == [1, 5, 6, 7, 2, 1, 4, 2, 1, 9, 9, 2, 2]
    assert packed.source_sentences.offsets.tolist() == [0, 5, 8, 12, 13]
    assert packed.source_sentences.positions.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3, 0]
    assert packed.target_in.tolist() == [1, 6, 5, 3, 8, 9, 4, 1, 4, 1, 3, 7, 1]
    assert packed.target_out.tolist() == [6, 5, 3, 8, 9, 4, 2, 4, 2, 3, 7, 2, 2]
    assert packed.source_sentences.offsets.dtype == torch.int32  # as the kernel takes them


def by_hand(query: Tensor, key: Tensor, value: Tensor, query_offsets: Tensor, key_offsets: Tensor, *rest: object,
            window_size: tuple[int, int]) -> Tensor:  # fmt: skip
    """What the kernel for sequences of different lengths computes, as its documentation says: (N, H, K) each."""
    results = []
    for (begin, end), (first, last) in zip(
        query_offsets.unfold(0, 2, 1).tolist(), key_offsets.unfold(0, 2, 1).tolist(), strict=True
    ):
        q, k, v = (x.transpose(0, 1)[None] for x in (query[begin:end], key[first:last], value[first:last]))
        assert window_size in ((-1, 0), (-1, -1))
        mask = torch.ones(end - begin, last - first, dtype=torch.bool)
        attended = dense_attention(q, k, v, mask.tril() if window_size == (-1, 0) else mask)
        results.append(attended[0].transpose(0, 1))
    return torch.cat(results)


def test_what_the_kernel_is_given_makes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    model = Transformer(CONFIG).eval()
    packed = pack_batch(BATCH, model)
    expected = packed_hidden_states(model, packed, torch.float32)
    monkeypatch.setattr(sys.modules["allyouneed.nn.attention"], "fits_flash", lambda *rest: True)
    monkeypatch.setattr(packed_file, "_kernel", by_hand)
    torch.testing.assert_close(packed_hidden_states(model, packed, torch.float32), expected)


def test_the_kernel_takes_these_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shapes alone, without numbers: it computes on a GPU only."""
    monkeypatch.setattr(packed_file, "_kernel", None)
    packed_file.load_flash()
    x = torch.empty(1, 3, 13, 8, dtype=torch.bfloat16, device="meta")
    sentences = PackedSentences(torch.empty(5, dtype=torch.int32, device="meta"), torch.empty(13, device="meta"), 5)
    for is_causal in (True, False):
        attended = packed_file.flash_attention(x, x, x, PackedMask(sentences, sentences, is_causal))
        assert (attended.shape, attended.dtype) == (x.shape, x.dtype)


def test_nothing_waits_for_the_device() -> None:
    """Tensors of the device "meta" have no numbers, so that reading one fails."""
    model = Transformer(CONFIG)
    packed = pack_batch(BATCH, model).to(torch.device("meta"))
    vectors = packed_hidden_states(model.to("meta"), packed, torch.float32)
    vectors.sum().backward()  # type: ignore[no-untyped-call]
    assert vectors.shape == (13, 24)
    with pytest.raises(RuntimeError, match="meta"):
        bool(vectors.sum() > 0)


def test_ids_outside_the_vocabulary_and_long_sentences_are_refused_before_they_reach_the_device() -> None:
    model = Transformer(CONFIG)
    with pytest.raises(InputError, match="id 17 is outside the vocabulary of 17"):
        pack_batch(Batch(SOURCE, TARGET.clone().fill_(17)), model)
    with pytest.raises(InputError, match="21 tokens is longer than max_length=20"):
        pack_batch(Batch(torch.ones(1, 21, dtype=torch.int64), TARGET[:1]), model)


def test_a_model_with_a_part_that_was_replaced_is_not_packed() -> None:
    custom = Transformer(CONFIG)
    custom.encoder.layers[0].feed_forward = torch.nn.Identity()
    assert not can_pack(custom)
    assert can_pack(Transformer(CONFIG))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of the compiler itself
def test_a_stack_compiles_to_one_graph() -> None:
    model = Transformer(replace(CONFIG, encoder_layers=1, decoder_layers=1))
    model.decoder.compile(backend="eager", dynamic=True, fullgraph=True)
    assert can_pack(model)
    compiled = packed_hidden_states(model, pack_batch(BATCH, model), torch.float32)
    plain = Transformer(model.config)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(compiled, packed_hidden_states(plain, pack_batch(BATCH, plain), torch.float32))
