"""A batch of real tokens alone is held equal to the padded batch that goes through the model."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.errors import InputError
from allyouneed.fast import packed_attention
from allyouneed.fast.attention import using_attention
from allyouneed.fast.packed import packed_hidden_states, packed_loss
from allyouneed.fast.packed_attention import PackedMask
from allyouneed.fast.packed_batch import PackedAhead, PackedSentences, pack_batch, packed_ahead
from allyouneed.nn import Transformer
from allyouneed.nn.attention import attention as dense_attention
from allyouneed.train import add_gradients
from allyouneed.younger import build_model

CONFIG = ModelConfig(
    vocab_size=17, d_model=24, d_ff=40, heads=3, encoder_layers=2, decoder_layers=2, dropout=0.0, max_length=20
)
SOURCE = torch.tensor([[1, 5, 6, 7, 2], [1, 4, 2, 0, 0], [1, 9, 9, 2, 0], [2, 0, 0, 0, 0]])
TARGET = torch.tensor(
    [[1, 6, 5, 3, 8, 9, 4, 2], [1, 4, 2, 0, 0, 0, 0, 0], [1, 3, 7, 2, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0, 0]]
)
BATCH = Batch(SOURCE, TARGET)


def trained(model: Transformer, vectors: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the vectors of the real tokens, and the gradients of a function of them."""
    model.zero_grad()
    weights = torch.arange(1, vectors.size(-1) + 1) / vectors.size(-1)
    (vectors * weights).square().sum().backward()  # type: ignore[no-untyped-call]
    return vectors.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def compare(config: ModelConfig, dtype: torch.dtype) -> dict[str, tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    model = build_model(config).train()
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        vectors = hidden_states(model)
    fast, gradients = trained(model, vectors.float())
    slow = model.hidden_states(SOURCE, BATCH.target_in)
    exact, expected = trained(model, slow.float()[BATCH.target_out != 0])
    assert gradients.keys() == expected.keys()
    return {"vectors": (fast, exact)} | {name: (gradients[name], expected[name]) for name in expected}


def hidden_states(model: Transformer) -> Tensor:
    with using_attention(model, packed_attention.packed_attention):
        return packed_hidden_states(model, pack_batch(BATCH, model.config))


OTHERS = [
    {},
    {"norm": "pre", "activation": "gelu", "positions": "learned"},
    {"tied_embeddings": "none", "d_k": 4, "d_v": 5, "projection_bias": True},
    {"positions": "sinusoidal-rotary", "query_key_norm": True},
]


@pytest.mark.parametrize("changes", OTHERS)
def test_vectors_and_gradients_are_those_of_the_model(changes: dict[str, object]) -> None:
    for name, (fast, exact) in compare(replace(CONFIG, **changes), torch.float32).items():  # type: ignore[arg-type]
        torch.testing.assert_close(fast, exact, atol=2e-4, rtol=1e-4, msg=name)


def test_in_bfloat16_they_differ_from_float32_by_rounding() -> None:
    for name, (fast, exact) in compare(CONFIG, torch.bfloat16).items():
        if not name.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone
            assert (fast - exact).norm() < 0.1 * exact.norm(), name


def test_packing_keeps_the_tokens_and_knows_their_sentences() -> None:
    packed = pack_batch(BATCH, CONFIG)
    assert packed.source.tolist() == [1, 5, 6, 7, 2, 1, 4, 2, 1, 9, 9, 2, 2]
    assert packed.source_sentences.offsets.tolist() == [0, 5, 8, 12, 13]
    assert packed.source_sentences.positions.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3, 0]
    assert packed.target_in.tolist() == [1, 6, 5, 3, 8, 9, 4, 1, 4, 1, 3, 7, 1]
    assert packed.target_out.tolist() == [6, 5, 3, 8, 9, 4, 2, 4, 2, 3, 7, 2, 2]
    assert packed.source_sentences.offsets.dtype == torch.int32  # as the kernel takes them


def by_hand(query: Tensor, key: Tensor, value: Tensor, query_offsets: Tensor, key_offsets: Tensor, *rest: object,
            window_size: tuple[int, int]) -> Tensor:  # fmt: skip
    """Compute what the kernel for sequences of different lengths does, by its documentation: (N, H, K) each."""
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
    expected = hidden_states(model)
    monkeypatch.setattr(packed_attention, "fits_flash", lambda *rest: True)
    monkeypatch.setattr(packed_attention, "_kernel", by_hand)
    torch.testing.assert_close(hidden_states(model), expected)


def test_the_kernel_takes_these_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shapes alone, without numbers: it computes on a GPU only."""
    monkeypatch.setattr(packed_attention, "_kernel", None)
    packed_attention.load_flash()
    x = torch.empty(1, 3, 13, 8, dtype=torch.bfloat16, device="meta")
    sentences = PackedSentences(torch.empty(5, dtype=torch.int32, device="meta"), torch.empty(13, device="meta"), 5)
    for is_causal in (True, False):
        attended = packed_attention.flash_attention(x, x, x, PackedMask(sentences, sentences, is_causal))
        assert (attended.shape, attended.dtype) == (x.shape, x.dtype)


def test_ids_outside_the_vocabulary_and_long_sentences_are_refused_before_they_reach_the_device() -> None:
    with pytest.raises(InputError, match="id 17 .*17"):
        pack_batch(Batch(SOURCE, TARGET.clone().fill_(17)), CONFIG)
    with pytest.raises(InputError, match="21 tokens .*max_length=20"):
        pack_batch(Batch(torch.ones(1, 21, dtype=torch.int64), TARGET[:1]), CONFIG)


def test_batches_that_are_packed_ahead_are_the_same() -> None:
    model, settings = Transformer(CONFIG), TrainConfig()
    ahead = list(packed_ahead(iter([BATCH] * 3), CONFIG))
    assert [batch.source.tolist() for batch in ahead] == [SOURCE.tolist()] * 3
    assert isinstance(ahead[0], PackedAhead)
    results = []
    for batches in ([BATCH], ahead[:1], ahead[0].split(2)):
        model.zero_grad()
        loss, norm = add_gradients(model, batches, settings, packed_loss)
        results.append([loss, norm, *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)
    torch.testing.assert_close(results[2], results[0])


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of the compiler itself
def test_a_stack_compiles_to_one_graph() -> None:
    model = Transformer(replace(CONFIG, encoder_layers=1, decoder_layers=1))
    model.decoder.compile(backend="eager", dynamic=True, fullgraph=True)
    compiled = hidden_states(model)
    plain = Transformer(model.config)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(compiled, hidden_states(plain))
