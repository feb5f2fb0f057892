"""Folders of fairseq and JoeyNMT with random weights, and what their models compute, written down in plain PyTorch."""

import argparse
import io
import json
import math
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor

State = dict[str, Tensor]
LINE = "the river opens a garden and follows every window of the winter house while bread paints mountains"
WORDS = LINE.split(" ")
LINES = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
TEXTS = ["the river opens", "every garden follows the house", "bread", "zebra paints a mountains"]
MERGES = [
    "t h",
    "th e</w>",
    "i n",
    "e r</w>",
    "o u",
    "w in",
    "a i",
    "o p",
    "e n",
    "op en",
    "g a",
    "r d",
    "ga rd",
    "e v",
]
PIECES = sorted({c for word in WORDS for c in word} | {"th", "in", "ou", "win", "open", "gard", "ev"})
D, FF, HEADS, LAYERS = 16, 24, 2, 2


def random_state(names: dict[str, tuple[int, ...]], *, seed: int = 0) -> State:
    """Tensors of these shapes; the gains of norms are near 1."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (1.0 if "norm" in name and name.endswith("weight") else 0.0)
        + torch.randn(shape, generator=generator) * (1 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.2)
        for name, shape in names.items()
    }


def attend(state: State, prefix: str, names: dict[str, str], query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """Multi-head attention; `mask` is added to the scores, and `names` are those of the four linear maps."""

    def project(part: str, x: Tensor) -> Tensor:
        y = F.linear(x, state[f"{prefix}.{names[part]}.weight"], state[f"{prefix}.{names[part]}.bias"])
        return y.view(*y.shape[:2], HEADS, D // HEADS).transpose(1, 2)

    q, k, v = project("q", query), project("k", memory), project("v", memory)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(D // HEADS) + mask).softmax(-1)
    mixed = (weights @ v).transpose(1, 2).flatten(2)
    return F.linear(mixed, state[f"{prefix}.{names['o']}.weight"], state[f"{prefix}.{names['o']}.bias"])


def causal(length: int) -> Tensor:
    """0 where a position may look, −∞ after it."""
    return torch.full((length, length), -math.inf).triu(1)


# --- fairseq

FAIRSEQ_SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>"]
FAIRSEQ_LINEAR = {part: f"{part}_proj" for part in "qkv"} | {"o": "out_proj"}


def fairseq_state(symbols: int, target_symbols: int, *, pre: bool, learned: bool, tied: str, seed: int = 0) -> State:
    """The weights of fairseq's transformer, under its names."""
    names: dict[str, tuple[int, ...]] = {
        "encoder.embed_tokens.weight": (symbols, D),
        "decoder.embed_tokens.weight": (target_symbols, D),
        "decoder.output_projection.weight": (target_symbols, D),
    }
    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        names[f"{side}.embed_positions.{'weight' if learned else '_float_tensor'}"] = (32 + 2, D) if learned else (1,)
        norms = [f"{side}.layer_norm"] if pre else []
        for i in range(LAYERS):
            layer = f"{side}.layers.{i}"
            for attention in attentions:
                for linear in FAIRSEQ_LINEAR.values():
                    names[f"{layer}.{attention}.{linear}.weight"] = (D, D)
                    names[f"{layer}.{attention}.{linear}.bias"] = (D,)
                norms.append(f"{layer}.{attention}_layer_norm")
            names |= {f"{layer}.fc1.weight": (FF, D), f"{layer}.fc1.bias": (FF,)}
            names |= {f"{layer}.fc2.weight": (D, FF), f"{layer}.fc2.bias": (D,)}
            norms.append(f"{layer}.final_layer_norm")
        names |= {f"{norm}.{kind}": (D,) for norm in norms for kind in ("weight", "bias")}
    state = random_state(names, seed=seed)
    state |= {f"{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")}
    if tied in ("all", "target"):
        state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"]
    if tied == "all":
        state["encoder.embed_tokens.weight"] = state["decoder.embed_tokens.weight"]
    return state


def fairseq_logits(state: State, source: Tensor, target: Tensor, *, pre: bool, scale: bool = True) -> Tensor:
    """What fairseq's transformer computes for rows without padding, (B, T, V). The first position is pad + 1 = 2."""

    def positions(side: str, length: int) -> Tensor:
        if (table := state.get(f"{side}.embed_positions.weight")) is not None:
            return table[2 : 2 + length]
        steps = math.log(10000) / (D // 2 - 1)
        angles = torch.arange(2, 2 + length)[:, None] * torch.exp(torch.arange(D // 2) * -steps)
        return torch.cat((angles.sin(), angles.cos()), 1)

    def norm(name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,), state[f"{name}.weight"], state[f"{name}.bias"], 1e-5)

    def feed(layer: str, x: Tensor) -> Tensor:
        inner = F.linear(x, state[f"{layer}.fc1.weight"], state[f"{layer}.fc1.bias"]).relu()
        return F.linear(inner, state[f"{layer}.fc2.weight"], state[f"{layer}.fc2.bias"])

    def residual(name: str, x: Tensor, sublayer: Any) -> Tensor:
        return x + sublayer(norm(name, x)) if pre else norm(name, x + sublayer(x))

    def run(side: str, ids: Tensor, memory: Tensor | None) -> Tensor:
        x = state[f"{side}.embed_tokens.weight"][ids] * (math.sqrt(D) if scale else 1) + positions(side, ids.size(1))
        mask = causal(ids.size(1)) if side == "decoder" else torch.zeros(())
        for i in range(LAYERS):
            layer = f"{side}.layers.{i}"
            x = residual(
                f"{layer}.self_attn_layer_norm", x,
                lambda y, layer=layer: attend(state, f"{layer}.self_attn", FAIRSEQ_LINEAR, y, y, mask),
            )  # fmt: skip
            if memory is not None:
                x = residual(
                    f"{layer}.encoder_attn_layer_norm", x,
                    lambda y, layer=layer: attend(
                        state, f"{layer}.encoder_attn", FAIRSEQ_LINEAR, y, memory, torch.zeros(())
                    ),
                )  # fmt: skip
            x = residual(f"{layer}.final_layer_norm", x, lambda y, layer=layer: feed(layer, y))
        return norm(f"{side}.layer_norm", x) if pre else x

    return F.linear(run("decoder", target, run("encoder", source, None)), state["decoder.output_projection.weight"])


def write_fairseq(
    folder: Path,
    *,
    pre: bool = False,
    learned: bool = False,
    tied: str = "all",
    subwords: str = "codes",
    newer: bool = False,
    changed: dict[str, Any] | None = None,
) -> tuple[State, list[str]]:
    """A folder; returns the weights and the tokens of both sides."""  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    tokens = write_subwords(folder, subwords, "sentencepiece.bpe.model", "bpecodes")
    for language in ("en", "it"):
        lines = [f"{token} {1000 - i}\n" for i, token in enumerate(tokens)]
        (folder / f"dict.{language}.txt").write_text("".join(lines), encoding="utf-8")
    symbols = [*FAIRSEQ_SYMBOLS, *tokens]
    state = fairseq_state(len(symbols), len(symbols), pre=pre, learned=learned, tied=tied)
    model = {
        "arch": "transformer_iwslt_de_en", "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
        "encoder_normalize_before": pre, "decoder_normalize_before": pre, "encoder_learned_pos": learned,
        "decoder_learned_pos": learned, "share_all_embeddings": tied == "all", "max_source_positions": 32,
        "share_decoder_input_output_embed": tied != "none", "max_target_positions": 32, "dropout": 0.3,
        "activation_fn": "relu", "no_scale_embedding": False,
    } | (changed or {})  # fmt: skip
    task = {"source_lang": "en", "target_lang": "it"}
    settings = (
        {"args": None, "cfg": {"task": task | {"_name": "translation"}, "model": argparse.Namespace(**model)}}
        if newer
        else {"args": argparse.Namespace(**model, **task)}
    )
    torch.save({"model": state, "optimizer_history": [], "extra_state": {"epoch": 3}, **settings}, folder / "model.pt")
    return state, symbols


# --- JoeyNMT

JOEY_SYMBOLS = ["<unk>", "<pad>", "<s>", "</s>"]
JOEY_LINEAR = {part: f"{part}_layer" for part in "qkv"} | {"o": "output_layer"}


def joeynmt_state(symbols: int, *, pre: bool, tied: str) -> State:
    """The weights of JoeyNMT's Transformer, under its names."""
    names: dict[str, tuple[int, ...]] = {
        "src_embed.lut.weight": (symbols, D),
        "trg_embed.lut.weight": (symbols, D),
        "decoder.output_layer.weight": (symbols, D),
    }
    for side, attentions in {
        "encoder": {"src_src_att": "layer_norm"},
        "decoder": {"trg_trg_att": "x_layer_norm", "src_trg_att": "dec_layer_norm"},
    }.items():
        norms = [f"{side}.layer_norm"] if pre else []
        for i in range(LAYERS):
            layer = f"{side}.layers.{i}"
            for attention, norm in attentions.items():
                for linear in JOEY_LINEAR.values():
                    names[f"{layer}.{attention}.{linear}.weight"] = (D, D)
                    names[f"{layer}.{attention}.{linear}.bias"] = (D,)
                norms.append(f"{layer}.{norm}")
            feed = f"{layer}.feed_forward.pwff_layer"
            names |= {f"{feed}.0.weight": (FF, D), f"{feed}.0.bias": (FF,)}
            names |= {f"{feed}.3.weight": (D, FF), f"{feed}.3.bias": (D,)}
            norms.append(f"{layer}.feed_forward.layer_norm")
        names |= {f"{norm}.{kind}": (D,) for norm in norms for kind in ("weight", "bias")}
    state = random_state(names)
    for side in ("encoder", "decoder"):
        state[f"{side}.pe.pe"] = joeynmt_positions(40)[None]
    if tied in ("all", "target"):
        state["decoder.output_layer.weight"] = state["trg_embed.lut.weight"]
    if tied == "all":
        state["src_embed.lut.weight"] = state["trg_embed.lut.weight"]
    return state


def joeynmt_positions(length: int) -> Tensor:
    """Sines at the even axes, cosines at the odd ones."""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, D, 2) * -(math.log(10000.0) / D))
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


def joeynmt_logits(state: State, source: Tensor, target: Tensor, *, pre: bool, scale: bool = True) -> Tensor:
    """What JoeyNMT's Transformer computes for rows without padding, (B, T, V)."""

    def norm(name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,), state[f"{name}.weight"], state[f"{name}.bias"], 1e-6)

    def feed(layer: str, x: Tensor) -> Tensor:
        first, second = (f"{layer}.feed_forward.pwff_layer.{i}" for i in (0, 3))
        inner = F.linear(x, state[f"{first}.weight"], state[f"{first}.bias"]).relu()
        return F.linear(inner, state[f"{second}.weight"], state[f"{second}.bias"])

    def residual(name: str, x: Tensor, sublayer: Any) -> Tensor:
        return x + sublayer(norm(name, x)) if pre else norm(name, x + sublayer(x))

    def embed(name: str, ids: Tensor) -> Tensor:
        vectors = state[f"{name}.lut.weight"][ids] * (math.sqrt(D) if scale else 1)
        return vectors + joeynmt_positions(ids.size(1))

    free = torch.zeros(())
    memory = embed("src_embed", source)
    for i in range(LAYERS):
        layer = f"encoder.layers.{i}"
        memory = residual(
            f"{layer}.layer_norm", memory,
            lambda y, layer=layer: attend(state, f"{layer}.src_src_att", JOEY_LINEAR, y, y, free),
        )  # fmt: skip
        memory = residual(f"{layer}.feed_forward.layer_norm", memory, lambda y, layer=layer: feed(layer, y))
    memory = norm("encoder.layer_norm", memory) if pre else memory
    x, mask = embed("trg_embed", target), causal(target.size(1))
    for i in range(LAYERS):
        layer = f"decoder.layers.{i}"
        x = residual(
            f"{layer}.x_layer_norm", x,
            lambda y, layer=layer: attend(state, f"{layer}.trg_trg_att", JOEY_LINEAR, y, y, mask),
        )  # fmt: skip
        x = residual(
            f"{layer}.dec_layer_norm", x,
            lambda y, layer=layer: attend(state, f"{layer}.src_trg_att", JOEY_LINEAR, y, memory, free),
        )  # fmt: skip
        x = residual(f"{layer}.feed_forward.layer_norm", x, lambda y, layer=layer: feed(layer, y))
    return F.linear(norm("decoder.layer_norm", x) if pre else x, state["decoder.output_layer.weight"])


def write_joeynmt(
    folder: Path,
    *,
    pre: bool = True,
    tied: str = "all",
    subwords: str = "codes",
    scale: bool = True,
    changed: dict[str, Any] | None = None,
    side: dict[str, Any] | None = None,
    testing: dict[str, Any] | None = None,
) -> tuple[State, list[str]]:
    """A folder; returns the weights and the tokens of both sides."""  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    symbols = [*JOEY_SYMBOLS, *write_subwords(folder, subwords, "spm.model", "codes.txt")]
    state = joeynmt_state(len(symbols), pre=pre, tied=tied)
    for name in ("src", "trg"):
        (folder / f"{name}_vocab.txt").write_text("\n".join(symbols) + "\n", encoding="utf-8")
    names = {"model_file": "/data/spm.model", "codes": "/data/codes.txt"}
    kind = {"codes": "subword-nmt", "spm": "sentencepiece"}[subwords]
    data = {"level": "bpe", "tokenizer_type": kind, "tokenizer_cfg": names} | (side or {})
    stack = {
        "type": "transformer", "num_heads": HEADS, "hidden_size": D, "ff_size": FF, "num_layers": LAYERS,
        "layer_norm": "pre" if pre else "post", "embeddings": {"embedding_dim": D, "scale": scale},
    } | (changed or {})  # fmt: skip
    config = {
        "data": {"src": data | {"lang": "en"}, "trg": data | {"lang": "it"}},
        "testing": {"beam_size": 5, "beam_alpha": 1.0} | (testing or {}),
        "model": {
            "tied_embeddings": tied == "all", "tied_softmax": tied != "none",
            "encoder": stack, "decoder": stack,
        },
    }  # fmt: skip
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    torch.save({"model_state": state, "stats_state": {"steps": 7}, "scheduler_state": None}, folder / "best.ckpt")
    return state, symbols


def write_subwords(folder: Path, kind: str, model: str, codes: str) -> list[str]:
    """The file of the merges or of the SentencePiece model. Returns the tokens that they make of our lines."""
    if kind == "codes":
        (folder / codes).write_text("#version: 0.2\n" + "".join(f"{line}\n" for line in MERGES))
        return [*(f"{piece}@@" for piece in PIECES), *(piece for piece in PIECES if len(piece) < 3), "the", "er"]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=made, vocab_size=60, hard_vocab_limit=False,
        num_threads=1, minloglevel=2,
    )  # fmt: skip
    (folder / model).write_bytes(made.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / model))
    return [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
