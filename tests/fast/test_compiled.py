"""The compiled kernels are held to PyTorch, and used where they are faster; test_eager.py tests whole steps."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import ir

from allyouneed.config import ModelConfig
from allyouneed.decode import most_likely
from allyouneed.device import has_vnni
from allyouneed.errors import ConfigError
from allyouneed.fast import compiled, kernels
from allyouneed.fast.engine import AnyEngine, EngineStep
from allyouneed.fast.quantization import greatest_level, quantize
from allyouneed.fast.selection import make_engine
from allyouneed.nn import Transformer
from allyouneed.younger import build_model
from conftest import ALL_OPTIONS
from twins import scatter


@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 70), st.integers(1, 140))
@settings(deadline=None, max_examples=40)
def test_a_map_of_floats_is_linear(seed: int, rows: int, deep: int, wide: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    x, weight = torch.randn(rows, deep, generator=rng), torch.randn(wide, deep, generator=rng)
    bias, results = torch.randn(wide, generator=rng), torch.empty(rows, wide)
    kernels.map_rows(x.numpy(), compiled.pack_float32([(weight, bias)]), results.numpy())
    torch.testing.assert_close(results, F.linear(x, weight, bias), atol=1e-4, rtol=1e-4)


def plain_product(rows: int) -> Callable[..., None]:
    """What the instructions do, in NumPy, so that the kernel around them is tested without them, too."""

    def multiply(
        maps: kernels.Int8Weights,
        levels: int,
        row_bytes: int,
        steps: int,
        panel: int,
        fours: int,
        to: int,
        to_bytes: int,
    ) -> None:
        wide = kernels.panel_outputs(maps)
        weights = np.ctypeslib.as_array((ctypes.c_int8 * (fours * 4 * wide)).from_address(panel)).reshape(
            fours, wide, 4
        )
        numbers = (ctypes.c_float * (3 * wide)).from_address(panel + weights.size)
        scale, weight_sum, bias = np.ctypeslib.as_array(numbers).reshape(3, wide)
        for r in range(rows):
            row = np.ctypeslib.as_array((ctypes.c_uint8 * (4 * fours)).from_address(levels + r * row_bytes))
            step, low = (ctypes.c_float * 2).from_address(steps + 8 * r)
            sums = np.einsum("fi,foi->o", row.reshape(fours, 4).astype(np.int32), weights.astype(np.int32))
            result = np.ctypeslib.as_array((ctypes.c_float * wide).from_address(to + r * to_bytes))
            result[:] = sums.astype(np.float32) * np.float32(step) * scale + np.float32(low) * weight_sum + bias

    return multiply


def plain_linear_int8(x: Any, weights: Any, result: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "multiply_one_row", plain_product(1))
        patch.setattr(kernels, "multiply_four_rows", plain_product(4))
        kernels.linear_int8.py_func(x, weights, 0, result)


@pytest.mark.parametrize("apply", [plain_linear_int8, kernels.map_rows])
@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 70), st.integers(1, 140), st.sampled_from([-9, 0, 9]))
@settings(deadline=None, max_examples=60)
def test_a_map_of_bytes_is_linear_of_what_was_rounded(
    apply: Callable[..., None], seed: int, rows: int, deep: int, wide: int, middle: int
) -> None:
    """Of every row by itself, to steps between its least and greatest number, 0 among them."""
    rng = torch.Generator().manual_seed(seed)
    x = middle + torch.randn(rows, deep, generator=rng)
    weight, bias = torch.randn(wide, deep, generator=rng), torch.randn(wide, generator=rng)
    low, high = x.amin(1, keepdim=True).clamp(max=0), x.amax(1, keepdim=True).clamp(min=0)
    step = (high - low) / greatest_level()
    numbers, scale = quantize(weight)
    results = torch.empty(rows, wide)
    apply(x.numpy(), compiled.pack_int8([(weight, bias)]), results.numpy())
    in_steps = ((x - low) / step + 0.5).floor()
    expected = F.linear(low + step * in_steps, scale[:, None] * numbers, bias)
    # A number in the middle between two steps may go to either.
    atol = 1e-3 + float((step * weight.abs().amax()).max()) * 2
    torch.testing.assert_close(results, expected, atol=atol, rtol=1e-4)
    assert (results - expected).abs().median() < 1e-3


@pytest.mark.parametrize("sizes", [{}, {"norm": "pre"}, {"d_k": 5, "d_v": 7, "activation": "gelu"}, ALL_OPTIONS])
def test_bytes_read_and_write_nearly_as_floats(
    config: ModelConfig, sizes: dict[str, Any], source: torch.Tensor
) -> None:
    """Encoder and decoder, with a padded source, for one hypothesis a sentence and for three."""
    model = build_model(replace(config, vocab_size=900, d_model=96, d_ff=130, heads=4, **sizes)).eval()
    scatter(model)
    exact, fast = make_engine(model), make_engine(model, precision="int8", compiled=True)
    with torch.inference_mode():
        for beam in (1, 3):
            order = torch.arange(len(source)).repeat_interleave(beam)
            state, expected_state = fast.start(source).reorder(order), exact.start(source).reorder(order)
            for _ in range(5):
                last = torch.randint(3, 900, (len(order),))
                logits, state = fast.step(last, state)
                expected, expected_state = exact.step(last, expected_state)
                assert (logits - expected).std() < 15 / greatest_level() * expected.std()


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(2, 300), st.floats(0.01, 40))
@settings(deadline=None, max_examples=40)
def test_log_softmax_is_that_of_pytorch(seed: int, rows: int, vocabulary: int, spread: float) -> None:
    rng = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(rows, vocabulary, generator=rng) - 50
    never = torch.tensor([0])
    expected = logits.double().index_fill(1, never, -torch.inf).log_softmax(-1).float()
    torch.testing.assert_close(compiled.compiled_log_softmax(logits, never), expected, atol=1e-4, rtol=1e-5)


def test_exponential_is_right_to_twelve_digits() -> None:
    x = torch.linspace(-700, 0, 5_000, dtype=torch.float64)
    results = torch.tensor([kernels.exponential(number) for number in x.numpy()], dtype=torch.float64)
    torch.testing.assert_close(results, x.exp(), rtol=1e-12, atol=0)
    assert kernels.exponential(-1e9) < 1e-300


@pytest.mark.parametrize("vocabulary", [1, 63, 64, 700])
def test_the_most_likely_token_is_that_of_pytorch_and_of_equals_the_first(vocabulary: int, model: Transformer) -> None:
    rows = torch.randint(-4, 0, (9, vocabulary)).float()
    engine = make_engine(model, precision="int8", compiled=True)
    expected, result = most_likely(rows, []), EngineStep(engine).most_likely(rows, [])
    assert [one.tolist() for one in result] == [one.tolist() for one in expected]


def test_exponential_in_float32_is_right_to_six_digits() -> None:
    x = torch.linspace(-87, 0, 5_000)
    results = torch.tensor([kernels.exponential_float32(number) for number in x.numpy()])
    torch.testing.assert_close(results, x.double().exp().float(), rtol=1e-6, atol=0)
    assert kernels.exponential_float32(torch.tensor(-1e9).numpy()[()]) < 1e-37


def test_it_is_used_where_it_is_quicker(
    model: Transformer, source: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float32 for steps, in turn with PyTorch while both are timed; as bytes always, and to read sentences."""
    used: list[str] = []

    def counted(name: str) -> Any:
        real = getattr(kernels, name)

        def call(*arguments: Any) -> None:
            used.append(name)
            real(*arguments)

        return call

    for name in ("encode_tokens", "decode_tokens", "decode_and_project"):
        monkeypatch.setattr(kernels, name, counted(name))

    def through(fast: AnyEngine, rows: slice) -> list[str]:
        used.clear()
        with torch.inference_mode():
            fast.step(torch.ones(len(source[rows]), dtype=torch.int64), fast.start(source[rows]))
        return list(used)

    floats = make_engine(model, compiled=True)
    for rows in (slice(0, 1), slice(0, 2)):
        assert [through(floats, rows) for _ in range(4)] == [["decode_tokens"], [], ["decode_tokens"], []]
    pack_int8 = make_engine(model, precision="int8", compiled=True)
    assert through(pack_int8, slice(0, 2)) == ["encode_tokens", "decode_and_project"]


def test_a_processor_without_these_instructions_is_refused(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "has_vnni", lambda: False)
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", dict)
    with pytest.raises(ConfigError, match='"int8" with compiled=True needs AVX2 \\(x86\\) or SDOT \\(ARM\\)'):
        make_engine(model, precision="int8", compiled=True)


@pytest.mark.skipif(not has_vnni(), reason="compiled for a processor without VPDPBUSD")
def test_avx_vnni_gives_the_numbers_of_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "greatest_level", lambda: 127)
    x, weight = torch.randn(5, 22), torch.randn(70, 22)
    results = torch.empty(2, 5, 70)
    for kind, result in zip((kernels.AVXVNNIWeights, kernels.AVX2Weights), results, strict=True):
        monkeypatch.setattr(compiled, "int8_weights", lambda kind=kind: kind)
        kernels.map_rows(x.numpy(), compiled.pack_int8([(weight, torch.zeros(70))]), result.numpy())
    assert results[0].equal(results[1])
    assert results[0].std() > 1


@pytest.mark.parametrize(
    ("kind", "processor", "expected"),
    [
        (kernels.AVXVNNIWeights, "alderlake", "{vex}\tvpdpbusd"),
        (kernels.AVX2Weights, "haswell", "vpmaddubsw"),
        (kernels.VNNIWeights, "cascadelake", "vpdpbusd"),
        (kernels.NEONWeights, "neoverse-n1", "sdot"),
    ],
)
def test_the_code_for_a_processor_has_its_instruction(
    kind: type[kernels.Int8Weights], processor: str, expected: str
) -> None:
    module = ir.Module()
    register = ir.VectorType(ir.IntType(32), kernels.LAYOUTS[kind].lanes)
    builder = ir.IRBuilder(ir.Function(module, ir.FunctionType(register, [register] * 3), "add").append_basic_block())
    builder.ret(kernels._add_products(builder, kind, *builder.function.args))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = "aarch64" if kind is kernels.NEONWeights else "x86_64"
    target = llvm.Target.from_triple(f"{machine}-unknown-linux-gnu").create_target_machine(cpu=processor)
    assert expected in target.emit_assembly(llvm.parse_assembly(str(module)))


@pytest.mark.parametrize(
    ("features", "kind"),
    [
        ("avx2", kernels.AVX2Weights),
        ("avx2 avxvnni", kernels.AVXVNNIWeights),
        ("avx2 avx512vnni avx512vl", kernels.AVXVNNIWeights),  # PyTorch is held to AVX2
        ("avx2 avx512vnni", kernels.AVX2Weights),
        ("neon dotprod", kernels.NEONWeights),
    ],
)
def test_a_processor_gets_its_fastest_instruction(
    features: str, kind: type[kernels.Int8Weights], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "has_vnni", lambda: False)
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: dict.fromkeys(features.split(), True))
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    assert compiled.int8_weights() is kind
    monkeypatch.setenv("NUMBA_CPU_NAME", "haswell")
    assert compiled.int8_weights() is (kernels.AVX2Weights if "avx2" in features else kind)
