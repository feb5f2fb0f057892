"""A bundle → Hugging Face transformers: a folder that `MarianMTModel.from_pretrained` loads and `generate` runs.

`MarianMTModel` is our model but for the order of the residual stream's axes: its position encoding has all sines,
then all cosines, ours has them in turn. Both orders are one permutation apart, so it is applied to every weight that
reads or writes the residual stream, and the two models are exactly equal.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from safetensors import SafetensorError
from torch import Tensor

from ...bundle import Bundle
from ...config import ModelConfig
from ...errors import MissingExtraError, OutputError
from ...files import write_whole
from ...nn.weights import weights
from .exported_tokenizer import save_tokenizer
from .precision import ExportPrecision
from .proof import ConvertedModel, banned_ids
from .sentencepiece_export import named_languages, save_sentencepiece

if TYPE_CHECKING:
    from transformers import MarianMTModel


ResidualAxis = Literal["rows", "columns", "none"]  # which axis of a weight is that of the residual stream

LINEAR: dict[str, ResidualAxis] = {"query": "columns", "key": "columns", "value": "columns", "output": "rows"}
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
ATTENTIONS = {  # ours: Marian's
    "encoder": {"attention": "self_attn"},
    "decoder": {"self_attention": "self_attn", "cross_attention": "encoder_attn"},
}
HUB_METADATA = ("library_name: transformers\n", "pipeline_tag: translation\n")
OUR_USAGE = ("from allyouneed import Translator", 'Translator.load("this/folder")("…")')  # in the card of a bundle
MARIAN_USAGE = """\
    from transformers import AutoTokenizer, MarianMTModel
    model, tokenizer = MarianMTModel.from_pretrained("this/folder"), AutoTokenizer.from_pretrained("this/folder")
    ids = model.generate(**tokenizer(["…"], return_tensors="pt", return_token_type_ids=False))
    tokenizer.batch_decode(ids, skip_special_tokens=True)
"""
LOGITS_BIAS = "final_logits_bias"
MARIAN_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "swish"}


def weight_names(config: ModelConfig) -> dict[str, tuple[str, ResidualAxis]]:
    """Our name of every weight → Marian's, and the axis of the residual stream."""
    names: dict[str, tuple[str, ResidualAxis]] = {
        "source_embedding.table": ("model.encoder.embed_tokens.weight", "columns"),
        "target_embedding.table": ("model.decoder.embed_tokens.weight", "columns"),
        "projection.table": ("lm_head.weight", "columns"),
    }
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for i in range(layers):
            layer = f"{stack}.layers.{i}"
            for attention, marian in ATTENTIONS[stack].items():
                for part, axis in LINEAR.items():
                    linear = f"model.{layer}.{marian}.{PROJECTIONS[part]}"
                    names[f"{layer}.{attention}.{part}.weight"] = f"{linear}.weight", axis
                    names[f"{layer}.{attention}.{part}.bias"] = f"{linear}.bias", "rows" if axis == "rows" else "none"
                names |= _norm(f"{layer}.{attention}_residual", f"model.{layer}.{marian}_layer_norm")
            names |= {
                f"{layer}.feed_forward.inner.weight": (f"model.{layer}.fc1.weight", "columns"),
                f"{layer}.feed_forward.inner.bias": (f"model.{layer}.fc1.bias", "none"),
                f"{layer}.feed_forward.outer.weight": (f"model.{layer}.fc2.weight", "rows"),
                f"{layer}.feed_forward.outer.bias": (f"model.{layer}.fc2.bias", "rows"),
            }
            names |= _norm(f"{layer}.feed_forward_residual", f"model.{layer}.final_layer_norm")
    return names


def marian_order(d_model: int) -> Tensor:
    """The axes of our residual stream in Marian's order: those of sines, then those of cosines."""
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


class HuggingFaceExporter:
    """An `Exporter` for transformers."""

    program = "transformers"
    precisions: tuple[ExportPrecision, ...] = ("float32", "float16")

    def default_precision(self, config: ModelConfig) -> ExportPrecision:
        """That of the bundle."""
        return "float32"

    def require_library(self) -> None:
        """Refuse to go on without the extra."""
        _library()

    def write(self, bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
        """Write `bundle` as a folder for `MarianMTModel` and `AutoTokenizer`."""
        library = _library()
        model = library.MarianMTModel(_config(library, bundle)).eval()
        missing, unexpected = model.load_state_dict(marian_weights(bundle), strict=False)
        assert not unexpected
        assert all("embed_positions" in name or name in (LOGITS_BIAS, "model.shared.weight") for name in missing)
        model.generation_config = _generation_config(library, bundle)
        if precision == "float16":
            model = model.half()
        try:
            with _no_progress_bars(library):
                model.save_pretrained(str(folder))
        except SafetensorError as error:  # of a full disk, too
            raise OutputError(f"the weights for {folder} could not be written: {error}") from error
        for file in folder.glob("*.safetensors"):  # it makes them readable for their owner alone
            write_whole(file, file.read_bytes())
        _save_tokenizer(library, bundle, folder)
        write_whole(folder / "README.md", _card(bundle))

    def load(self, folder: Path, bundle: Bundle, precision: ExportPrecision) -> ConvertedModel:
        """The folder at work in transformers."""
        return MarianFolder(folder, bundle)


def marian_weights(bundle: Bundle) -> dict[str, Tensor]:
    """The weights under Marian's names, the residual stream in its order."""
    config = bundle.model.config
    order = marian_order(config.d_model)
    stored = weights(bundle.model)
    table = stored["source_embedding.table"]
    target = stored.get("target_embedding.table", table)
    tables = {
        "source_embedding.table": table,
        "target_embedding.table": target,
        "projection.table": stored.get("projection.table", target),
    }
    made = {}
    for ours, (marian, axis) in weight_names(config).items():
        weight = tables[ours] if ours in tables else stored[ours]
        if axis != "none":
            weight = weight.index_select(0 if axis == "rows" else 1, order)
        made[marian] = weight.contiguous()
    if config.projection_bias:
        made[LOGITS_BIAS] = stored["projection.bias"][None]
    return made


class MarianFolder:
    """An exported folder at work in transformers; see `ConvertedModel`."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        library = _library()
        with _no_progress_bars(library):
            self._model: MarianMTModel = library.MarianMTModel.from_pretrained(str(folder), dtype=torch.float32).eval()
        tokenizer = bundle.target_tokenizer
        self._special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id}

    @torch.inference_mode()
    def translate(self, sources: list[list[int]], *, beam: int, max_length: int) -> list[list[int]]:
        """As in `ConvertedModel`."""
        no_penalty = {"length_penalty": 0.0} if beam > 1 else {}
        written = []
        for source in sources:
            (ids,) = self._model.generate(
                torch.tensor([source]),
                num_beams=beam,
                max_new_tokens=max_length,
                max_length=None,
                renormalize_logits=True,
                forced_eos_token_id=None,
                min_length=0,
                no_repeat_ngram_size=0,
                **no_penalty,
            ).tolist()
            written.append([i for i in ids if i not in self._special])
        return written

    @torch.inference_mode()
    def log_probabilities(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """As in `ConvertedModel`."""
        gains = []
        for source, target in zip(sources, targets, strict=True):
            ids = torch.tensor([target])
            logits = self._model(torch.tensor([source]), decoder_input_ids=ids[:, :-1]).logits
            logits[..., self._model.generation_config.suppress_tokens] = -torch.inf
            gains.append(logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[0, :, 0].tolist())
        return gains


def _norm(ours: str, marian: str) -> dict[str, tuple[str, ResidualAxis]]:
    return {f"{ours}.norm.gain": (f"{marian}.weight", "rows"), f"{ours}.norm.bias": (f"{marian}.bias", "rows")}


def _config(library: Any, bundle: Bundle) -> Any:
    config, tokenizer = bundle.model.config, bundle.target_tokenizer
    return library.MarianConfig(
        vocab_size=config.vocab_size,
        d_model=config.d_model,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        activation_function=MARIAN_ACTIVATIONS[config.activation],
        max_position_embeddings=config.max_length,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
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


def _generation_config(library: Any, bundle: Bundle) -> Any:
    tokenizer, decode = bundle.target_tokenizer, bundle.decode
    return library.GenerationConfig(
        num_beams=decode.beam,
        **({"length_penalty": decode.alpha, "early_stopping": False} if decode.beam > 1 else {}),
        max_length=min(bundle.model.config.max_length, (decode.max_length or bundle.model.config.max_length) + 1),
        renormalize_logits=decode.renormalize_logits,
        forced_eos_token_id=tokenizer.eos_id if decode.forced_eos else None,
        min_length=decode.min_length,  # the start token counts there, the end token here
        no_repeat_ngram_size=decode.no_repeat_ngram_size,
        suppress_tokens=list(banned_ids(bundle)),
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.sos_id,
        eos_token_id=tokenizer.eos_id,
        decoder_start_token_id=tokenizer.sos_id,
    )


def _card(bundle: Bundle) -> str:
    """The bundle's card for the hub: what it is for in its metadata, and how this folder is loaded."""
    metadata, text = re.fullmatch(r"(?:---\n(.*?)---\n)?(.*)", bundle.card, re.DOTALL).groups(default="")  # type: ignore[union-attr]
    metadata += "".join(line for line in HUB_METADATA if line.partition(":")[0] + ":" not in metadata)
    kept = [line for line in text.strip().split("\n") if line.strip() not in OUR_USAGE]
    return "\n".join(["---", metadata + "---", "", *kept, MARIAN_USAGE])


def _save_tokenizer(library: Any, bundle: Bundle, folder: Path) -> None:
    if bundle.source_tokenizer.symbols is not None:
        save_sentencepiece(bundle, folder)
        return
    save_tokenizer(bundle.source_tokenizer, bundle.normalization, folder / "tokenizer.json")
    unknown = {} if bundle.source_tokenizer.unk_id is None else {"unk_token": "<unk>"}
    library.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        bos_token="<sos>",
        eos_token="<eos>",
        pad_token="<pad>",
        model_max_length=bundle.model.config.max_length,
        **unknown,
        **named_languages(bundle),
    ).save_pretrained(str(folder))


@contextmanager
def _no_progress_bars(library: Any) -> Iterator[None]:
    bars = library.utils.logging
    if not bars.is_progress_bar_enabled():
        yield
        return
    bars.disable_progress_bar()
    try:
        yield
    finally:
        bars.enable_progress_bar()


def _library() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError("Hugging Face", "export") from error
    return transformers
