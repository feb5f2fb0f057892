"""Convert a bundle to and from Hugging Face transformers: a folder for `MarianMTModel.from_pretrained` and `generate`.

`MarianMTModel` is our model except for the order of the residual stream's axes: its position encoding has all sines,
then all cosines, while ours alternates. A single permutation converts one order to the other. If it is applied to every
weight that reads or writes the residual stream, the two models are exactly equal.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from torch import Tensor

from ...bundle import Bundle, split_card
from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError, ConfigError, DataError, OutputError, refused
from ...machine.files import write_whole
from ...nn.weights import weights
from ...run.run_bundle import CARD_USAGE
from ...text.backends import EOS, PAD
from ...text.normalize import Normalization
from ...text.sentencepiece import SentencePieceModel, make_tokenizer, order_pieces, with_specials
from ...text.tokenizer import Tokenizer
from ...text.vocabulary import Vocabulary
from .checkpoint_files import read_json_table, read_tensor_file
from .exports import ExportPrecision, banned_ids
from .foreign_model import (
    OUR_ACTIVATIONS,
    PROJECTION,
    SOURCE,
    TABLES,
    TARGET,
    Checkpoint,
    StoredWeights,
    WeightFormat,
    our_value,
    require_equal,
)
from .vocabularies import named_languages, normalizer, save_sentencepiece, save_tokenizer

LOGITS_BIAS = "final_logits_bias"
MARIAN = WeightFormat(
    program="Marian",
    names={
        "encoder.layers": "model.encoder.layers",
        "decoder.layers": "model.decoder.layers",
        ".attention_residual.norm": ".self_attn_layer_norm",
        ".self_attention_residual.norm": ".self_attn_layer_norm",
        ".cross_attention_residual.norm": ".encoder_attn_layer_norm",
        ".feed_forward_residual.norm": ".final_layer_norm",
        ".attention": ".self_attn",
        ".self_attention": ".self_attn",
        ".cross_attention": ".encoder_attn",
        ".query": ".q_proj",
        ".key": ".k_proj",
        ".value": ".v_proj",
        ".output": ".out_proj",
        ".feed_forward.inner": ".fc1",
        ".feed_forward.outer": ".fc2",
        ".gain": ".weight",
        SOURCE: "model.encoder.embed_tokens.weight",
        TARGET: "model.decoder.embed_tokens.weight",
        PROJECTION: "lm_head.weight",
        "projection.bias": LOGITS_BIAS,
    },
    shared=dict.fromkeys(
        ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
        "model.shared.weight",
    ),
    sinusoids=("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
)
HUB_METADATA = ("library_name: transformers\n", "pipeline_tag: translation\n")
# Names of sizes in transformers → ours. Heads and layers have one name per stack.
SIZES = {
    "d_model": "d_model", "encoder_layers": "encoder_layers", "decoder_layers": "decoder_layers", "dropout": "dropout",
    "attention_dropout": "attention_dropout", "max_position_embeddings": "max_length",
}  # fmt: skip
STACKS = ("encoder", "decoder")
SIZES_OF_STACKS = {"attention_heads": "heads", "ffn_dim": "d_ff"}
MARIAN_USAGE = """\
    from transformers import AutoTokenizer, MarianMTModel
    model, tokenizer = MarianMTModel.from_pretrained("this/folder"), AutoTokenizer.from_pretrained("this/folder")
    ids = model.generate(**tokenizer(["…"], return_tensors="pt", return_token_type_ids=False))
    tokenizer.batch_decode(ids, skip_special_tokens=True)
"""


def write_huggingface(bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
    """Write `bundle` as a folder for `MarianMTModel` and `AutoTokenizer`."""
    import transformers

    model = transformers.MarianMTModel(_config(bundle)).eval()
    missing, unexpected = model.load_state_dict(marian_weights(bundle), strict=False)
    assert not unexpected
    assert all("embed_positions" in name or name in (LOGITS_BIAS, "model.shared.weight") for name in missing)
    model.generation_config = _generation_config(bundle)
    if precision == "float16":
        model = model.half()
    what = f"the weights for {folder} could not be written"
    with refused(OutputError, what, SafetensorError), _no_progress_bars():  # for example a full disk
        model.save_pretrained(str(folder))
    for file in folder.glob("*.safetensors"):  # transformers makes them readable only for their owner
        write_whole(file, file.read_bytes())
    _save_tokenizer(bundle, folder)
    write_whole(folder / "README.md", _card(bundle))


def marian_weights(bundle: Bundle) -> dict[str, Tensor]:
    """Return the weights under Marian's names, with the residual stream in Marian's order."""
    stored = weights(bundle.model)
    for first, then in pairwise(TABLES):  # transformers stores tied tables under every name
        stored.setdefault(then, stored[first])
    made = {MARIAN.name(name): MARIAN.reorder(name, weight).contiguous() for name, weight in stored.items()}
    if LOGITS_BIAS in made:
        made[LOGITS_BIAS] = made[LOGITS_BIAS][None]
    return made


class MarianFolder:
    """An exported folder in transformers; see `ConvertedModel`."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        import transformers

        with _no_progress_bars():
            self._model: Any = transformers.MarianMTModel.from_pretrained(str(folder), dtype=torch.float32).eval()
        tokenizer = bundle.target_tokenizer
        self._special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id}

    @torch.inference_mode()
    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        (ids,) = self._model.generate(
            torch.tensor([source]),
            num_beams=beam,
            max_new_tokens=max_length,
            max_length=None,
            renormalize_logits=True,
            forced_eos_token_id=None,
            min_length=0,
            no_repeat_ngram_size=0,
            **({"length_penalty": 0.0} if beam > 1 else {}),
        ).tolist()
        return [i for i in ids if i not in self._special]

    @torch.inference_mode()
    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        ids = torch.tensor([target])
        logits: Tensor = self._model(torch.tensor([source]), decoder_input_ids=ids[:, :-1]).logits
        logits[..., self._model.generation_config.suppress_tokens] = -torch.inf
        gains: list[float] = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[0, :, 0].tolist()
        return gains


def _config(bundle: Bundle) -> Any:
    import transformers

    config, tokenizer = bundle.model.config, bundle.target_tokenizer
    return transformers.MarianConfig(
        vocab_size=config.vocab_size,
        **{there: getattr(config, ours) for there, ours in SIZES.items()},
        **{
            f"{stack}_{there}": getattr(config, SIZES_OF_STACKS[there])
            for stack, there in product(STACKS, SIZES_OF_STACKS)
        },
        activation_function=next(there for there, ours in OUR_ACTIVATIONS.items() if ours == config.activation),
        activation_dropout=0.0,
        scale_embedding=True,
        share_encoder_decoder_embeddings=config.tied_embeddings == "all",
        tie_word_embeddings=config.tied_embeddings != "none",
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.sos_id,
        eos_token_id=tokenizer.eos_id,
        decoder_start_token_id=tokenizer.sos_id,
        forced_eos_token_id=tokenizer.eos_id if bundle.decode.forced_eos else None,
    )


def _generation_config(bundle: Bundle) -> Any:
    import transformers

    tokenizer, decode = bundle.target_tokenizer, bundle.decode
    return transformers.GenerationConfig(
        num_beams=decode.beam,
        **({"length_penalty": decode.alpha, "early_stopping": False} if decode.beam > 1 else {}),
        max_length=min(bundle.model.config.max_length, (decode.max_length or bundle.model.config.max_length) + 1),
        renormalize_logits=decode.renormalize_logits,
        forced_eos_token_id=tokenizer.eos_id if decode.forced_eos else None,
        min_length=decode.min_length,  # counts the start token there, and the end token here
        no_repeat_ngram_size=decode.no_repeat_ngram_size,
        suppress_tokens=list(banned_ids(bundle)),
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.sos_id,
        eos_token_id=tokenizer.eos_id,
        decoder_start_token_id=tokenizer.sos_id,
    )


def _card(bundle: Bundle) -> str:
    """Write the bundle's card for the hub: the task in the metadata, and how to load this folder."""
    metadata, text = split_card(bundle.card)
    metadata += "".join(line for line in HUB_METADATA if line.partition(":")[0] + ":" not in metadata)
    kept = [line for line in text.strip().split("\n") if line.strip() not in CARD_USAGE]
    return "\n".join(["---", metadata + "---", "", *kept, MARIAN_USAGE])


def _save_tokenizer(bundle: Bundle, folder: Path) -> None:
    import transformers

    if bundle.source_tokenizer.symbols is not None:
        save_sentencepiece(bundle, folder)
        return
    save_tokenizer(bundle.source_tokenizer, bundle.normalization, folder / "tokenizer.json")
    unknown = {} if bundle.source_tokenizer.unk_id is None else {"unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        bos_token="<sos>",
        eos_token="<eos>",
        pad_token="<pad>",
        model_max_length=bundle.model.config.max_length,
        **unknown,
        **named_languages(bundle),
    ).save_pretrained(str(folder))


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    from transformers.utils import logging as bars

    enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            bars.enable_progress_bar()


DEFAULTS: dict[str, Any] = {  # the defaults of transformers for a config.json
    "vocab_size": 58101, "max_position_embeddings": 1024, "d_model": 1024, "activation_function": "gelu",
    "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "dropout": 0.1, "attention_dropout": 0.0,
    "scale_embedding": False, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
    "pad_token_id": 58100, "eos_token_id": 0, "forced_eos_token_id": 0, "decoder_start_token_id": 58100,
}  # fmt: skip
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
NEUTRAL: dict[str, Any] = {  # settings of `generate` that have no equivalent here, with the values that change nothing
    "do_sample": False, "num_beam_groups": 1, "repetition_penalty": 1.0, "num_return_sequences": 1,
    "encoder_no_repeat_ngram_size": 0, "begin_suppress_tokens": None, "forced_bos_token_id": None, "prefix": None,
    "min_new_tokens": None,
}  # fmt: skip


def read_huggingface(folder: Path) -> Checkpoint:
    """Read a folder of transformers: its config.json, generation_config.json, vocabulary and weights."""
    table = DEFAULTS | read_json_table(folder / "config.json")
    for name in ("pad_token_id", "eos_token_id"):
        if type(table[name]) is not int:
            raise CheckpointError(f"config.json has {name}={table[name]!r:.40}; expected a whole number")
    path = folder / "generation_config.json"
    generation = read_json_table(path) if path.is_file() else table  # older folders have a single file
    vocabulary, normalization = _read_vocabulary(folder, table)
    config = vocabulary.with_vocab_size(_model_config(table))
    _require_ids(table, vocabulary, config)
    tensors = _read_tensors(folder)
    return Checkpoint(
        stored=StoredWeights(tensors, MARIAN, unscaled=() if table["scale_embedding"] else (SOURCE, TARGET)),
        config=replace(config, projection_bias=LOGITS_BIAS in tensors),
        vocabulary=vocabulary,
        decode=_decode_config(generation, vocabulary.target, eos_id=table["eos_token_id"]),
        normalization=normalization,
        languages=_languages(folder),
    )


def _model_config(table: dict[str, Any]) -> ModelConfig:
    """Read the sizes of the model, except those of the vocabulary."""
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        if table.get(name):
            raise CheckpointError(f"config.json has {name}, as no Marian model has")
    tied: Any = "all" if table["share_encoder_decoder_embeddings"] else "target"
    if not table["tie_word_embeddings"] or not table["scale_embedding"]:
        tied = "none"  # our embeddings are scaled by √d_model, so the projection needs its own table
    return ModelConfig(
        vocab_size=table["vocab_size"],
        pad_id=table["pad_token_id"],
        **{ours: table[there] for there, ours in SIZES.items()},
        **{
            ours: require_equal(there, *(table[f"{stack}_{there}"] for stack in STACKS))
            for there, ours in SIZES_OF_STACKS.items()
        },
        activation=our_value("activation_function", table["activation_function"], OUR_ACTIVATIONS | {"silu": "silu"}),
        tied_embeddings=tied,
    )


def _require_ids(table: dict[str, Any], vocabulary: Vocabulary, config: ModelConfig) -> None:
    """Refuse a config whose sizes or special ids differ from those of the vocabulary."""
    target = vocabulary.target
    for name, expected in (
        ("vocab_size", config.vocab_size),
        ("decoder_vocab_size", config.effective_target_vocab_size),
        ("pad_token_id", config.pad_id),
        ("eos_token_id", target.eos_id),
        ("decoder_start_token_id", target.sos_id),
    ):
        if table.get(name, expected) != expected:
            raise CheckpointError(f"config.json has {name}={table[name]!r:.40}, but the vocabulary has {expected}")


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    path = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
    if path is None:
        raise CheckpointError(f"{folder} has no weights; expected {' or '.join(WEIGHT_FILES)}")
    tensors = read_tensor_file(path)
    if LOGITS_BIAS in tensors:
        tensors[LOGITS_BIAS] = tensors[LOGITS_BIAS].squeeze(0)  # (1, V)
    return tensors


def _read_vocabulary(folder: Path, table: dict[str, Any]) -> tuple[Vocabulary, Normalization]:
    if (folder / "source.spm").is_file():
        return _marian_vocabulary(folder, table), Normalization(unicode="none")
    if (folder / "tokenizer.json").is_file():
        return _own_export(folder)
    raise CheckpointError(f"{folder} has no vocabulary; expected source.spm, target.spm and vocab.json")


def _marian_vocabulary(folder: Path, table: dict[str, Any]) -> Vocabulary:
    """Read two SentencePiece models, and the ids of their pieces."""
    ids = read_json_table(folder / "vocab.json")
    path = folder / "target_vocab.json"
    target_ids = read_json_table(path) if path.is_file() else ids
    specials = {table["eos_token_id"]: EOS, table["pad_token_id"]: PAD}
    sides = [SentencePieceModel.load(folder / f"{side}.spm") for side in ("source", "target")]
    symbols = [with_specials(order_pieces(one), specials) for one in (ids, target_ids)]
    start = table["decoder_start_token_id"]
    if not isinstance(start, int) or not 0 <= start < len(symbols[1]):
        raise CheckpointError(f"decoder_start_token_id must be an id of the vocabulary; got {start!r:.40}")
    return Vocabulary(
        make_tokenizer(sides[0], symbols[0], start=None),
        make_tokenizer(sides[1], symbols[1], start=symbols[1][start]),
    )


def _own_export(folder: Path) -> tuple[Vocabulary, Normalization]:
    """Read the vocabulary and the normalization of a folder that our own export has written."""
    table = read_json_table(folder / "tokenizer.json")
    forms: tuple[Literal["NFC", "NFKC", "none"], ...] = ("NFC", "NFKC", "none")
    for unicode, strip_control in product(forms, (True, False)):
        normalization = Normalization(unicode=unicode, strip_control=strip_control)
        for vocabulary in (None, {"type": "Prepend", "prepend": " "}):
            if table.get("normalizer") == normalizer(normalization, vocabulary):
                with refused(CheckpointError, f"{folder}/tokenizer.json", DataError, ConfigError):
                    tokenizer = Tokenizer.from_json(json.dumps(table | {"normalizer": vocabulary}))
                return Vocabulary(tokenizer, tokenizer), normalization
    raise CheckpointError(f"{folder}/tokenizer.json normalizes text in another way than our exports do")


def _decode_config(table: dict[str, Any], tokenizer: Tokenizer, *, eos_id: int) -> DecodeConfig:
    """Translate the settings of `generate` to ours."""
    for name, neutral in NEUTRAL.items():
        if table.get(name, neutral) not in (neutral, None):
            raise CheckpointError(
                f"generation_config.json has {name}={table[name]!r:.40}, which has no equal here; remove it there, and "
                "look for a similar setting in docs/decoding.md"
            )
    words = [*(table.get("bad_words_ids") or []), *([i] for i in table.get("suppress_tokens") or [])]
    if any(not isinstance(word, list) or len(word) != 1 for word in words):
        raise CheckpointError("generation_config.json has bad_words_ids of several tokens, which cannot be imported")
    banned = {word[0] for word in words}
    if other := banned - set(tokenizer.banned_ids(unknown=True)):
        raise CheckpointError(f"generation_config.json bans the token {min(other)}; only <pad> and <unk> can be banned")
    # max_new_tokens takes precedence over max_length, which also counts the start token.
    most = int(table.get("max_new_tokens") or int(table.get("max_length") or 20) - 1)
    return DecodeConfig(
        beam=int(table.get("num_beams") or 1),
        alpha=float(1.0 if table.get("length_penalty") is None else table["length_penalty"]),
        length_penalty="plain",
        early_stopping="beam",
        length_ratio=0.0,
        extra_length=most,
        max_length=most,
        min_length=min(int(table.get("min_length") or 0), most),
        forced_eos=table.get("forced_eos_token_id") == eos_id,
        ban_unknown=tokenizer.unk_id in banned,
        renormalize_logits=bool(table.get("renormalize_logits")),
        no_repeat_ngram_size=int(table.get("no_repeat_ngram_size") or 0),
    )


def _languages(folder: Path) -> tuple[str, str]:
    """Read the languages that the tokenizer names, as in `"source_lang": "pt-BR"`."""
    path = folder / "tokenizer_config.json"
    table = read_json_table(path) if path.is_file() else {}
    return str(table.get("source_lang", "")), str(table.get("target_lang", ""))
