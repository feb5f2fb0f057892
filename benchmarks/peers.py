"""CTranslate2 or Hugging Face as a worker process of decode.py, in an environment of its own.

    python benchmarks/peers.py ctranslate2|huggingface

It reads one JSON object a line and answers with one. It does not import allyouneed: its models are folders that
`allyouneed export` or `Bundle.save` wrote.
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
        tokens = json.loads((Path(folder) / "shared_vocabulary.json").read_text(encoding="utf-8"))
        return tokens, {token: i for i, token in enumerate(tokens)}

    @lru_cache(1)
    def load(folder: str, precision: str, threads: int, parallel: int) -> Any:
        return ctranslate2.Translator(
            folder, compute_type=precision, inter_threads=parallel, intra_threads=threads // parallel
        )

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "settings":
            return {
                "precisions": sorted(ctranslate2.get_supported_compute_types("cpu")),
                "version": ctranslate2.__version__,
            }
        tokens, ids = names(request["folder"])
        translator = load(request["folder"], request["precision"], request["threads"], request["parallel"])
        sources = [[tokens[i] for i in source[1:-1]] for source in request["sources"]]
        begin = time.perf_counter()
        results = translator.translate_batch(
            sources, beam_size=request["beam"], length_penalty=0, max_batch_size=request["batch"],
            max_decoding_length=request["max_length"],
            min_decoding_length=request["max_length"] if request["forced"] else 0,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        outputs = [[ids[token] for token in result.hypotheses[0]] for result in results]
        return {"seconds": seconds, "outputs": outputs}

    return answer


def huggingface_worker() -> Callable[[dict[str, Any]], dict[str, Any]]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()

    @lru_cache(1)
    def load(folder: str, precision: str) -> Any:
        return marian(Path(folder)).to(getattr(torch, precision))

    @torch.inference_mode()
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "settings":
            return {"precisions": ["bfloat16", "float32"], "version": transformers.__version__}
        model = load(request["folder"], request["precision"])
        torch.set_num_threads(request["threads"])
        pad, max_length, sources = model.config.pad_token_id, request["max_length"], request["sources"]
        by_length = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        outputs: Ids = [[] for _ in sources]
        begin = time.perf_counter()
        for start in range(0, len(by_length), request["batch"]):
            indices = by_length[start : start + request["batch"]]
            rows = [sources[i] for i in indices]
            width = max(map(len, rows))
            source = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
            generated = model.generate(
                source, attention_mask=source != pad, num_beams=request["beam"], do_sample=False, length_penalty=0.0,
                max_new_tokens=max_length, min_new_tokens=max_length if request["forced"] else 0,
            )  # fmt: skip
            special = (pad, model.config.eos_token_id)
            for i, row in zip(indices, generated.tolist(), strict=True):
                outputs[i] = [token for token in row[1:] if token not in special]
        return {"seconds": time.perf_counter() - begin, "outputs": outputs}

    return answer


def marian(folder: Path) -> Any:
    """Put a bundle's weights into a Marian model, which has our structure (post norm, sinusoids, ReLU)."""
    import torch
    from safetensors.torch import load_file
    from transformers import MarianConfig, MarianMTModel

    ours = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model"]
    peer = json.loads((folder / "peer.json").read_text(encoding="utf-8"))
    model = MarianMTModel(
        MarianConfig(
            vocab_size=ours["vocab_size"], d_model=ours["d_model"], activation_function="relu", scale_embedding=True,
            encoder_layers=ours["encoder_layers"], encoder_ffn_dim=ours["d_ff"], encoder_attention_heads=ours["heads"],
            decoder_layers=ours["decoder_layers"], decoder_ffn_dim=ours["d_ff"], decoder_attention_heads=ours["heads"],
            max_position_embeddings=ours["max_length"], decoder_start_token_id=peer["sos"], bos_token_id=peer["sos"],
            eos_token_id=peer["eos"], pad_token_id=peer["pad"], forced_eos_token_id=None,
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
    state = model.state_dict()
    for name, tensor in load_file(folder / "weights.safetensors").items():
        if name.endswith(".table"):
            for shared in (
                "model.shared.weight",
                "lm_head.weight",
                "model.encoder.embed_tokens.weight",
                "model.decoder.embed_tokens.weight",
            ):
                state[shared].copy_(tensor)
            continue
        stack, layers, number, *rest = name.split(".")
        part, kind = ".".join(rest[:-1]), rest[-1]
        marian_part = names.get(part) or ".".join(names[piece] for piece in part.split("."))
        state[f"model.{stack}.{layers}.{number}.{marian_part}.{names.get(kind, kind)}"].copy_(tensor)
    positions = torch.tensor(peer["positions"])
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weight.data.copy_(positions)
    model.final_logits_bias[:, [peer["pad"], peer["sos"]]] = -1e9
    return model


def main() -> None:
    answer = {"ctranslate2": ctranslate2_worker, "huggingface": huggingface_worker}[sys.argv[1]]()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
