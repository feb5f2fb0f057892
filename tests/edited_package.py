"""What an edited copy of the package computes: `python edited_package.py FOLDER…`, each with the package and a report.

PyTorch is imported once; then a child process for each folder imports the package there, trains and translates. Only
those of `SERVED` also serve, because a server makes its translator like everybody else.
"""

import json
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

TABLES: dict[str, Any] = {
    "data": {
        "train": "dates:train", "valid": "dates:valid", "max_train_samples": 100, "max_valid_samples": 5,
        "vocabulary": "characters",
    },
    "model": {
        "d_model": 16, "d_ff": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_length": 70,
        "dropout": 0.3,
    },
    "train": {
        "steps": 3, "batch_tokens": 200, "warmup": 2, "validate_every": 3, "average_checkpoints": 1, "threads": 1,
        "tensorboard": False,
    },
    "decode": {"beam": 2, "max_length": 8, "min_length": 5, "copy_untranslatable": False, "retry_repetition": False},
}  # fmt: skip
TEXTS = ["1845-01-05", "2001-12-31"]
WAYS = ("float32", "int8")
SERVED = ("", "attention", "position")  # edits whose translations a server is asked for
OWN = {"allyouneed", "__main__", "__mp_main__"}  # modules that each child imports itself


def observe(folder: Path) -> dict[str, Any]:
    """Return the trained weights, the results of each engine and `forward` on its translations, and a server's."""
    import torch

    from allyouneed import Recipe, Translator, fit
    from allyouneed.nn.weights import weights

    torch.set_num_threads(1)
    bundle = fit(Recipe.from_tables(TABLES), folder / "run")
    model = bundle.model
    report = dict[str, Any]()

    @torch.inference_mode()
    def forward_says(source: list[int], banned_ids: tuple[int, ...], ids: list[int]) -> float:
        total = 0.0
        prefix = [bundle.target_tokenizer.sos_id]
        for token in ids:
            logits = model(torch.tensor([source]), torch.tensor([prefix]))[0, -1]
            total += float(logits.index_fill(0, torch.tensor(banned_ids), -torch.inf).log_softmax(-1)[token])
            prefix.append(token)
        return total

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for way in WAYS:
            translator = Translator(bundle, precision=way)
            generator = translator._generator
            split = translator.split(TEXTS)
            requests = [segment.request for segment in split.segments]
            hypotheses = [best for best, *_ in generator.generate(requests)[0]]
            report[way] = {
                "search": [hypothesis.log_probability for hypothesis in hypotheses],
                "forward": [
                    forward_says(request.source, generator.banned_ids, generator.target(hypothesis)[1:])
                    for request, hypothesis in zip(requests, hypotheses, strict=True)
                ],
            }
            texts = [
                {"text": one.text, "log_probability": one.log_probability} for one in translator.translations(TEXTS)
            ]
            report.setdefault("translations", texts)
        if (folder / "served").exists():
            report["served"] = serve(folder)
    report["warnings"] = sorted({str(one.message) for one in warned if "slowly" in str(one.message)})
    report["weights"] = float(sum(tensor.double().abs().sum() for tensor in weights(model).values()))
    return report


def serve(folder: Path) -> list[dict[str, Any]]:
    """Return the translations of a server."""
    from fastapi.testclient import TestClient

    from allyouneed.apps.serve.app import create_app
    from allyouneed.apps.serve.options import ServeConfig

    with TestClient(create_app([f"{folder}/run=en-it"], ServeConfig(workers=1)), "http://localhost") as client:
        answer = client.post("/v1/translate", json={"texts": TEXTS, "source": "en", "target": "it"})
    translations: list[dict[str, Any]] = answer.json()["translations"]
    return translations


def main() -> None:
    import fastapi.testclient  # noqa: F401  here, so that no child has to
    import torch  # noqa: F401

    os.fsync = lambda fd: None
    for folder in map(Path, sys.argv[1:]):
        if (child := os.fork()) == 0:
            sys.path.insert(0, str(folder))
            report = observe(folder)
            report["modules"] = [name for name in sys.modules if name.partition(".")[0] not in OWN]
            (folder / "report.json").write_text(json.dumps(report))
            os._exit(0)
        os.waitpid(child, 0)
        for name in json.loads((folder / "report.json").read_text())["modules"]:
            with suppress(ImportError):
                import_module(name)  # once, for all the children that follow


if __name__ == "__main__":
    main()
