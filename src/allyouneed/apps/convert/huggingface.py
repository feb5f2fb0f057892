"""A bundle → Hugging Face transformers: a folder that `MarianMTModel.from_pretrained` loads and `generate` runs.

`MarianMTModel` is our model but for the order of the residual stream's axes: its position encoding has all sines,
then all cosines, ours has them in turn. Both orders are one permutation apart, so it is applied to every weight that
reads or writes the residual stream, and the two models are exactly equal.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from ...bundle import Bundle
from ...errors import OutputError
from ...files import write_whole
from ...nn.weights import weights
from .exports import ExportPrecision, banned_ids
from .foreign_model import FAIRSEQ_NAMES, OUR_ACTIVATIONS, PROJECTION, SOURCE, TABLES, TARGET, WeightFormat
from .vocabularies import named_languages, save_sentencepiece, save_tokenizer

LOGITS_BIAS = "final_logits_bias"
MARIAN = WeightFormat(
    program="Marian",
    names=FAIRSEQ_NAMES
    | {
        "encoder.layers": "model.encoder.layers",
        "decoder.layers": "model.decoder.layers",
        SOURCE: "model.encoder.embed_tokens.weight",
        TARGET: "model.decoder.embed_tokens.weight",
        PROJECTION: "lm_head.weight",
        "projection.bias": LOGITS_BIAS,
    },
    shared=dict.fromkeys(
        ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
        "model.shared.weight",
    ),
    sines_first=True,
    sinusoids={"model.encoder.embed_positions.weight": 2, "model.decoder.embed_positions.weight": 2},
)
HUB_METADATA = ("library_name: transformers\n", "pipeline_tag: translation\n")
OUR_USAGE = ("from allyouneed import Translator", 'Translator.load("this/folder")("…")')  # in the card of a bundle
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
    try:
        with _no_progress_bars():
            model.save_pretrained(str(folder))
    except SafetensorError as error:  # of a full disk, too
        raise OutputError(f"the weights for {folder} could not be written: {error}") from error
    for file in folder.glob("*.safetensors"):  # it makes them readable for their owner alone
        write_whole(file, file.read_bytes())
    _save_tokenizer(bundle, folder)
    write_whole(folder / "README.md", _card(bundle))


def marian_weights(bundle: Bundle) -> dict[str, Tensor]:
    """The weights under Marian's names, the residual stream in its order."""
    stored = weights(bundle.model)
    for first, then in pairwise(TABLES):  # tied tables are stored there under every name
        stored.setdefault(then, stored[first])
    made = {MARIAN.name(name): MARIAN.reorder(name, weight).contiguous() for name, weight in stored.items()}
    if LOGITS_BIAS in made:
        made[LOGITS_BIAS] = made[LOGITS_BIAS][None]
    return made


class MarianFolder:
    """An exported folder at work in transformers; see `ConvertedModel`."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        import transformers

        with _no_progress_bars():
            self._model: Any = transformers.MarianMTModel.from_pretrained(str(folder), dtype=torch.float32).eval()
        tokenizer = bundle.target_tokenizer
        self._special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id}

    @torch.inference_mode()
    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        """As in `ConvertedModel`."""
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
        """As in `ConvertedModel`."""
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
        d_model=config.d_model,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        activation_function=next(there for there, ours in OUR_ACTIVATIONS.items() if ours == config.activation),
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


def _generation_config(bundle: Bundle) -> Any:
    import transformers

    tokenizer, decode = bundle.target_tokenizer, bundle.decode
    return transformers.GenerationConfig(
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
