"""The peer of gpu.py: Hugging Face's Seq2SeqTrainer with a Marian model of the same sizes, on the same batches."""

import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import transformers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from train_worker import make_marian_model

IGNORED = -100  # the label that the loss leaves out

Pair = tuple[Tensor, Tensor]


def unpadded(batch: Pair, pad_id: int) -> list[Pair]:
    """Return the pairs of a padded batch."""
    return [(source[source != pad_id], target[target != pad_id]) for source, target in zip(*batch, strict=True)]


def collate_pairs(pairs: Sequence[Pair], pad_id: int) -> dict[str, Tensor]:
    """Collate pairs as a data collator does: the inputs of the model, padded."""
    source, target_in, labels = (
        pad_sequence(side, batch_first=True, padding_value=value)
        for side, value in (
            ([source for source, _ in pairs], pad_id),
            ([target[:-1] for _, target in pairs], pad_id),
            ([target[1:] for _, target in pairs], IGNORED),
        )
    )
    return {"input_ids": source, "attention_mask": source != pad_id, "decoder_input_ids": target_in, "labels": labels}


class Clock(transformers.TrainerCallback):  # type: ignore[misc]
    """Takes the time from the end of one update to the end of another."""

    def __init__(self, first: int, last: int, wait: Callable[[], None]) -> None:
        self._first, self._last, self._wait = first, last, wait
        self.seconds = 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step in (self._first, self._last):
            self._wait()
            self.seconds = time.perf_counter() - self.seconds


def trainer_seconds(
    setup: dict[str, Any], stored: Sequence[Pair], *, warm_up: int, updates: int, wait: Callable[[], None]
) -> float:
    """Measure updates after the first `warm_up`, in seconds: bfloat16, fused AdamW, worker processes, pinned memory."""
    pad_id, on_gpu = setup["model"]["pad_id"], setup["device"] == "cuda"
    clock = Clock(warm_up, warm_up + updates, wait)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.Seq2SeqTrainingArguments(
            folder, max_steps=warm_up + updates, per_device_train_batch_size=1, bf16=True, use_cpu=not on_gpu,
            optim="adamw_torch_fused", learning_rate=1e-4, adam_beta2=0.98, max_grad_norm=0.0,
            label_smoothing_factor=0.1, dataloader_num_workers=4 if on_gpu else 0, dataloader_pin_memory=on_gpu,
            train_sampling_strategy="sequential", remove_unused_columns=False, save_strategy="no",
            logging_strategy="no", report_to=[], disable_tqdm=True,
        )  # fmt: skip
        transformers.Seq2SeqTrainer(
            make_marian_model(setup["model"]),
            arguments,
            data_collator=lambda batches: collate_pairs(batches[0], pad_id),
            train_dataset=[unpadded(batch, pad_id) for batch in stored],
            callbacks=[clock],
        ).train()
    return clock.seconds
