"""One system of train.py as a process: ours, `torch.nn.Transformer`, or Hugging Face's Marian model.

    python benchmarks/train_worker.py ours|torch.nn|transformers float32|bfloat16 FOLDER [FIRST_BATCH]

It reads one JSON object a line and answers with one. The folder has the batches and the sizes. The worker of Hugging
Face runs in an environment of its own, and does not import allyouneed.
"""

import json
import os
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

PRODUCT = 1024  # rows and columns of the matrices of the plain product
Pairs = Iterator[tuple[Tensor, Tensor]]

# The kinds of the profile: the first whose name occurs in an operation or in one that called it.
KINDS = {
    "optimizer": ("Optimizer.step", "clip_grad", "foreach_norm"),
    "embedding and loss": ("embedding", "CrossEntropy"),
    "products": ("aten::mm", "aten::addmm", "linear_pointwise", "aten::linear"),
    "attention": ("scaled_dot_product", "aten::bmm", "softmax", "baddbmm"),
    "norm": ("layer_norm",),
    "elementwise": (
        "aten::add", "aten::mul", "aten::copy_", "aten::random_", "aten::ge", "aten::relu", "threshold", "aten::sum",
        "aten::fill_", "aten::clamp",
    ),
}  # fmt: skip


def our_updates(setup: dict[str, Any], pairs: Pairs, dtype: Any) -> Iterator[object]:
    """Yield updates of ours, without end."""
    from allyouneed import ModelConfig, Transformer
    from allyouneed.config import TrainConfig
    from allyouneed.data.batch import Batch
    from allyouneed.fast.passes import choose_loss
    from allyouneed.machine.device import configure_process
    from allyouneed.train import add_gradients, updates
    from allyouneed.younger.muon import build_optimizer

    configure_process(1)
    model = Transformer(ModelConfig(**setup["model"])).to(setup.get("device", "cpu"))
    config = TrainConfig(steps=10**6, precision=dtype, optimizer=setup["optimizer"], clip_norm=0.0)
    gradients = partial(add_gradients, loss_of=choose_loss(model, config)[0])
    batches = (Batch(*pair) for pair in pairs)
    return updates(model, build_optimizer(model, config), batches, config, gradients=gradients)


def torch_updates(setup: dict[str, Any], pairs: Pairs, dtype: str) -> Iterator[object]:
    """Yield updates of `torch.nn.Transformer` between our embeddings and projection, by the usual loop."""
    from allyouneed import ModelConfig, Transformer
    from allyouneed.nn import causal_mask

    config = ModelConfig(**setup["model"])
    frame = Transformer(replace(config, encoder_layers=1, decoder_layers=1))
    outside = (frame.source_embedding, frame.source_position, frame.projection)
    embedding, position, projection = outside
    body = nn.Transformer(
        config.d_model, config.heads, config.encoder_layers, config.decoder_layers, config.d_ff, config.dropout,
        batch_first=True,
    )  # fmt: skip

    def logits(source: Tensor, target_in: Tensor) -> Tensor:
        padding = source == config.pad_id
        sides = [position(embedding(ids)) for ids in (source, target_in)]
        mask = ~causal_mask(target_in.size(1))
        vectors = body(*sides, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        scores: Tensor = projection(vectors)
        return scores

    yield from usual_loop(nn.ModuleList([body, *outside]), logits, pairs, dtype, config.pad_id)


def make_marian_model(sizes: dict[str, Any]) -> Any:
    """Make a `MarianMTModel` of the same sizes."""
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=sizes["vocab_size"], d_model=sizes["d_model"], activation_function="relu", scale_embedding=True,
            encoder_layers=sizes["encoder_layers"], encoder_ffn_dim=sizes["d_ff"],
            encoder_attention_heads=sizes["heads"], decoder_layers=sizes["decoder_layers"],
            decoder_ffn_dim=sizes["d_ff"], decoder_attention_heads=sizes["heads"], max_position_embeddings=512,
            dropout=0.1, pad_token_id=sizes["pad_id"], bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
            forced_eos_token_id=None,
        )
    )  # fmt: skip


def transformers_updates(setup: dict[str, Any], pairs: Pairs, dtype: str) -> Iterator[object]:
    """Yield updates of a `MarianMTModel` of the same sizes, by the loop that its users write."""
    model, pad_id = make_marian_model(setup["model"]), setup["model"]["pad_id"]

    def logits(source: Tensor, target_in: Tensor) -> Tensor:
        output = model(input_ids=source, attention_mask=source != pad_id, decoder_input_ids=target_in, use_cache=False)
        scores: Tensor = output.logits
        return scores

    yield from usual_loop(model.to(setup.get("device", "cpu")), logits, pairs, dtype, pad_id)


def usual_loop(
    model: nn.Module, logits: Callable[[Tensor, Tensor], Tensor], pairs: Pairs, dtype: str, pad_id: int
) -> Iterator[object]:
    """Run the loop that users of PyTorch write: autocast, cross entropy, AdamW."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    device = next(model.parameters()).device
    for pair in pairs:
        source, target = (side.to(device) for side in pair)
        with torch.autocast(device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
            outputs = logits(source, target[:, :-1])
        loss = F.cross_entropy(
            outputs.flatten(0, 1).float(), target[:, 1:].flatten(), ignore_index=pad_id, label_smoothing=0.1
        )
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        yield None


def product_rate(dtype: torch.dtype) -> float:
    """Measure the floating-point operations a second of a plain product."""
    left, right = (torch.randn(PRODUCT, PRODUCT).to(dtype) for _ in range(2))
    times = []
    for _ in range(8):
        begin = time.process_time()
        left @ right
        times.append(time.process_time() - begin)
    return 2 * PRODUCT**3 / statistics.median(times)


def useful_flops(setup: dict[str, Any], pair: tuple[Tensor, Tensor]) -> tuple[float, int]:
    """Count the matrix work for the real tokens of a batch, forward and backward, and its target tokens."""
    from allyouneed import ModelConfig
    from allyouneed.apps.paper import flops_per_token_pair

    config = ModelConfig(**setup["model"])
    source, target = ((side != config.pad_id).sum().item() for side in (pair[0], pair[1][:, 1:]))
    tokens = (source + target) / 2
    work = flops_per_token_pair(config, length=round(tokens / len(pair[0])), vocabulary=config.vocab_size)
    return 3 * tokens * work, int(target)


def by_kind(events: Any) -> dict[str, float]:
    """Sum the milliseconds of every kind of operation."""
    total: Counter[str] = Counter(dict.fromkeys([*KINDS, "other"], 0.0))
    for event in events:
        ancestors, names = event, []
        while ancestors is not None:
            names.append(ancestors.name)
            ancestors = ancestors.cpu_parent
        kinds = (kind for kind, parts in KINDS.items() if any(part in name for part in parts for name in names))
        total[next(kinds, "other")] += event.self_cpu_time_total / 1000
    return dict(total)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    system, dtype, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    setup = json.loads((folder / "setup.json").read_text(encoding="utf-8"))
    stored = torch.load(folder / "batches.pt")
    first = int(sys.argv[4]) % len(stored) if sys.argv[4:] else 0
    systems = {"ours": our_updates, "torch.nn": torch_updates, "transformers": transformers_updates}
    taken: list[tuple[Tensor, Tensor]] = []

    def feed() -> Pairs:
        for pair in cycle(stored[first:] + stored[:first]):
            taken.append(pair)
            yield pair

    updates = systems[system](setup, feed(), dtype)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, float] = {}
        if request["do"] == "updates":
            taken.clear()
            begin = time.process_time()
            for _ in range(request["count"]):
                next(updates)
            answer = {"seconds": time.process_time() - begin, "updates": request["count"]}
            answer["tokens"] = sum(int((target[:, 1:] != setup["model"]["pad_id"]).sum()) for _, target in taken)
            if system == "ours":
                answer["flops"] = sum(useful_flops(setup, pair)[0] for pair in taken)
                answer["product"] = product_rate(getattr(torch, dtype))
        elif request["do"] == "profile":
            with profile(activities=[ProfilerActivity.CPU]) as profiled:
                for _ in range(request["count"]):
                    next(updates)
            answer = by_kind(profiled.events())
        elif request["do"] == "memory":
            answer = {"megabytes": peak_megabytes()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
