"""A peer at work, in the peers' own environment: CTranslate2 or Hugging Face, told what to do by decode.py.

    python benchmarks/peers.py ctranslate2|huggingface

Reads one JSON object a line, writes one back. It imports nothing of ours: what it gets is a folder
that `allyouneed export` or `Bundle.save` wrote.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

Ids = list[list[int]]


def ctranslate2_worker() -> Callable[[dict[str, Any]], dict[str, Any]]:
    import ctranslate2

    @lru_cache(2)
    def names(folder: str) -> tuple[list[str], dict[str, int]]:
        words = json.loads((Path(folder) / "shared_vocabulary.json").read_text(encoding="utf-8"))
        return words, {word: i for i, word in enumerate(words)}

    @lru_cache(1)
    def load(folder: str, precision: str, threads: int, parallel: int) -> Any:
        return ctranslate2.Translator(
            folder, compute_type=precision, inter_threads=parallel, intra_threads=threads // parallel
        )

    def answer(order: dict[str, Any]) -> dict[str, Any]:
        if order["do"] == "settings":
            return {
                "precisions": sorted(ctranslate2.get_supported_compute_types("cpu")),
                "version": ctranslate2.__version__,
            }
        words, ids = names(order["folder"])
        translator = load(order["folder"], order["precision"], order["threads"], order["parallel"])
        sources = [[words[i] for i in source[1:-1]] for source in order["sources"]]
        begin = time.perf_counter()
        results = translator.translate_batch(
            sources, beam_size=order["beam"], length_penalty=0, max_batch_size=order["batch"],
            max_decoding_length=order["longest"], min_decoding_length=order["longest"] if order["forced"] else 0,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        return {"seconds": seconds, "outputs": [[ids[word] for word in result.hypotheses[0]] for result in results]}

    return answer


def huggingface_worker() -> Callable[[dict[str, Any]], dict[str, Any]]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()

    @lru_cache(1)
    def load(folder: str, precision: str) -> Any:
        return marian(Path(folder)).to(getattr(torch, precision))

    @torch.inference_mode()
    def answer(order: dict[str, Any]) -> dict[str, Any]:
        if order["do"] == "settings":
            return {"precisions": ["bfloat16", "float32"], "version": transformers.__version__}
        model = load(order["folder"], order["precision"])
        torch.set_num_threads(order["threads"])
        pad, longest = model.config.pad_token_id, order["longest"]
        places = sorted(range(len(order["sources"])), key=lambda place: len(order["sources"][place]))
        outputs: Ids = [[] for _ in places]
        begin = time.perf_counter()
        for start in range(0, len(places), order["batch"]):
            some = places[start : start + order["batch"]]
            rows = [order["sources"][place] for place in some]
            width = max(map(len, rows))
            source = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
            written = model.generate(
                source, attention_mask=source != pad, num_beams=order["beam"], do_sample=False, length_penalty=0.0,
                max_new_tokens=longest, min_new_tokens=longest if order["forced"] else 0,
            )  # fmt: skip
            signs = (pad, model.config.eos_token_id)
            for place, row in zip(some, written.tolist(), strict=True):
                outputs[place] = [i for i in row[1:] if i not in signs]
        return {"seconds": time.perf_counter() - begin, "outputs": outputs}

    return answer


def marian(folder: Path) -> Any:
    """The weights of a bundle in Marian's model, the one there that is built as ours is (post norm, sines, ReLU)."""
    import torch
    from safetensors.torch import load_file
    from transformers import MarianConfig, MarianMTModel

    ours = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model"]
    signs = json.loads((folder / "signs.json").read_text(encoding="utf-8"))
    model = MarianMTModel(
        MarianConfig(
            vocab_size=ours["vocab_size"], d_model=ours["d_model"], activation_function="relu", scale_embedding=True,
            encoder_layers=ours["encoder_layers"], encoder_ffn_dim=ours["d_ff"], encoder_attention_heads=ours["heads"],
            decoder_layers=ours["decoder_layers"], decoder_ffn_dim=ours["d_ff"], decoder_attention_heads=ours["heads"],
            max_position_embeddings=ours["max_length"], decoder_start_token_id=signs["sos"], bos_token_id=signs["sos"],
            eos_token_id=signs["eos"], pad_token_id=signs["pad"], forced_eos_token_id=None,
            share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
        )
    ).eval()  # fmt: skip
    names = {
        "self_attention": "self_attn", "cross_attention": "encoder_attn", "attention": "self_attn",
        "query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj", "gain": "weight",
        "feed_forward.inner": "fc1", "feed_forward.outer": "fc2", "feed_forward_residual.norm": "final_layer_norm",
        "self_attention_residual.norm": "self_attn_layer_norm", "attention_residual.norm": "self_attn_layer_norm",
        "cross_attention_residual.norm": "encoder_attn_layer_norm",
    }  # fmt: skip
    there = model.state_dict()
    for name, tensor in load_file(folder / "weights.safetensors").items():
        if name.endswith(".table"):
            for shared in (
                "model.shared.weight",
                "lm_head.weight",
                "model.encoder.embed_tokens.weight",
                "model.decoder.embed_tokens.weight",
            ):
                there[shared].copy_(tensor)
            continue
        stack, layers, number, *rest = name.split(".")
        part, kind = ".".join(rest[:-1]), rest[-1]
        theirs = names.get(part) or ".".join(names[piece] for piece in part.split("."))
        there[f"model.{stack}.{layers}.{number}.{theirs}.{names.get(kind, kind)}"].copy_(tensor)
    positions = torch.tensor(signs["positions"])
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weight.data.copy_(positions)
    model.final_logits_bias[:, [signs["pad"], signs["sos"]]] = -1e9
    return model


def main() -> None:
    answer = {"ctranslate2": ctranslate2_worker, "huggingface": huggingface_worker}[sys.argv[1]]()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
