"""Folders of `MarianMTModel` with random weights and real SentencePiece models, shaped like OPUS-MT's."""

import io
import json
import random
from pathlib import Path
from typing import Any

import sentencepiece
import torch

NOUNS = "house river garden window letter winter bread mountain teacher engine harbour pencil kitchen market story"
VERBS = "opens follows carries paints breaks remembers watches repairs crosses finds describes buys"
NOMI = "casa fiume giardino finestra lettera inverno pane montagna maestro motore porto matita cucina mercato storia"
VERBI = "apre segue porta dipinge rompe ricorda guarda ripara attraversa trova descrive compra"


def sentences(nouns: str, verbs: str, article: str, count: int, seed: int = 1) -> list[str]:
    """Draw sentences such as "the river follows the garden, 17 times."."""
    rng = random.Random(seed)
    return [
        f"{article} {rng.choice(nouns.split())} {rng.choice(verbs.split())} {article} {rng.choice(nouns.split())}, "
        f"{rng.randrange(100)} {rng.choice(['é', 'ù', 'à', 'x'])}."
        for _ in range(count)
    ]


ENGLISH, ITALIAN = sentences(NOUNS, VERBS, "the", 400), sentences(NOMI, VERBI, "il", 400)
TEXTS = [*ENGLISH[:6], "The ½ ﬁlm\u00a0 is  new… 你好", "", "a", "ß"]


def train_spm(lines: list[str], path: Path, size: int, **options: Any) -> None:
    """Train a unigram model and write it to a file."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=made, vocab_size=size, character_coverage=1.0,
        hard_vocab_limit=False, num_threads=1, minloglevel=2, **options,
    )  # fmt: skip
    path.write_bytes(made.getvalue())


def write_vocabulary(folder: Path, *, tags: tuple[str, ...] = (), size: int = 0, separate: bool = False) -> int:
    """Write source.spm, target.spm and vocab.json, with pieces of no meaning up to `size`. Returns the size."""
    folder.mkdir(parents=True, exist_ok=True)
    train_spm(ENGLISH, folder / "source.spm", 120)
    train_spm(ITALIAN, folder / "target.spm", 130)
    sides = []
    for side in ("source", "target"):
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        sides.append([model.id_to_piece(i) for i in range(3, model.get_piece_size())])
    if separate:
        size = max(map(len, sides)) + 3  # both have one id for <pad>
        (folder / "vocab.json").write_text(_ids(sides[0], size))
        (folder / "target_vocab.json").write_text(_ids(sides[1], size))
        return size
    pieces = [*tags, *dict.fromkeys([*sides[0], *sides[1]])]
    random.Random(1).shuffle(pieces)
    (folder / "vocab.json").write_text(_ids(pieces, size))
    return max(size, len(pieces) + 3)


def _ids(pieces: list[str], size: int) -> str:
    rest = [f"▁word{i}" for i in range(size - len(pieces) - 3)]
    return json.dumps({piece: i for i, piece in enumerate(["</s>", "<unk>", *pieces, *rest, "<pad>"])})


def write_checkpoint(
    folder: Path, *, tags: tuple[str, ...] = (), size: int = 0, half: bool = False, **config: Any
) -> Any:
    """Write a whole folder; return the model, a `MarianMTModel`."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    generation = config.pop("generation", {})
    separate = config.get("share_encoder_decoder_embeddings") is False
    size = write_vocabulary(folder, tags=tags, size=size, separate=separate)
    pad = size - 1
    sizes = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 64,
        "scale_embedding": True, "activation_function": "swish", "vocab_size": pad + 1, "pad_token_id": pad,
        "decoder_start_token_id": pad, "eos_token_id": 0, "bos_token_id": 0, "forced_eos_token_id": 0,
        "init_std": 0.3,
    }  # fmt: skip
    torch.manual_seed(1)
    model = MarianMTModel(MarianConfig(**{**sizes, **config})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, 0] += 1.0  # so that sentences end
    model.generation_config = GenerationConfig(
        **{
            "bad_words_ids": [[pad]], "bos_token_id": 0, "decoder_start_token_id": pad, "eos_token_id": 0,
            "forced_eos_token_id": 0, "max_length": 40, "num_beams": 4, "pad_token_id": pad, **generation,
        }
    )  # fmt: skip
    (model.half() if half else model).save_pretrained(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "it"}))
    return MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval() if half else model
