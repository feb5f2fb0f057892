"""The settings of `[decode]`: the search for a translation (§6.1)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

from ..errors import ConfigError
from .settings import COUNT, COUNT_OR_NONE, SEED, Checked, Range, build_settings, setting

Span = Literal["urls", "emails", "tags", "placeholders", "emoji", "numbers"]
SPANS: tuple[str, ...] = get_args(Span)


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeConfig(Checked):
    """How to search for a translation (§6.1); docs/decoding.md describes the settings.

    Lengths are in tokens. The length of an output counts its end token; the length of an input counts no special
    tokens.
    """

    beam: int = setting(
        4, "hypotheses kept at each step; 1: greedy search", Range(at_least=1, at_most=10_000), paper="4"
    )
    alpha: float = setting(
        0.6,
        "exponent of the length penalty; higher values favour longer translations",
        Range(at_least=0, at_most=10),
        paper="0.6",
    )
    length_penalty: Literal["gnmt", "plain"] = setting(
        "gnmt",
        "length penalty: ((5 + length) / 6)^alpha of Wu et al. (gnmt), or length^alpha (plain)",
        paper="gnmt",
        imported=True,
    )
    early_stopping: Literal["nbest", "beam"] = setting(
        "nbest",
        "when a beam search stops: once no active hypothesis can get among the nbest finished ones (nbest), or once "
        "beam hypotheses are finished and none of the beam best is worse than the best active one at its present "
        "length (beam), as in Hugging Face transformers",
        paper="not mentioned",
        imported=True,
    )
    patience: float = setting(
        1.0,
        "end a search once beam · patience hypotheses are finished and no other is likely to be better",
        Range(more_than=0, at_most=1_000),
    )
    nbest: int = setting(1, "translations of each sentence, best first", Range(at_least=1, at_most=10_000), paper="1")
    extra_length: int = setting(
        50, "maximum output length, in tokens, in addition to length_ratio times the input length", COUNT, paper="50"
    )
    length_ratio: float = setting(
        1.0,
        "maximum output length as a multiple of the input length; extra_length is added",
        Range(at_least=0, at_most=1_000),
        paper="1",
    )
    max_length: int = setting(0, "maximum output length in tokens; 0: the model's", COUNT_OR_NONE)
    min_length: int = setting(0, "minimum output length in tokens", COUNT_OR_NONE)
    min_ratio: float = setting(
        0.0, "minimum output length as a multiple of the input length", Range(at_least=0, at_most=1_000)
    )
    forced_eos: bool = setting(
        False,
        "end a translation at its maximum length by the end token, instead of cutting it off there",
        imported=True,
    )
    no_repeat_ngram_size: int = setting(
        0, "never write an n-gram of this many tokens twice in an output; 0: off", COUNT_OR_NONE
    )
    repetition_penalty: float = setting(
        1.0,
        "penalty for tokens that the output already contains; above 1, repetition is less likely; 1: off",
        Range(more_than=0, at_most=1_000),
    )
    sample: bool = setting(False, "sample each token at random instead of searching")
    temperature: float = setting(
        1.0,
        "sampling: divisor of the logits; below 1 likely tokens become more likely",
        Range(at_least=0.001, at_most=1_000),
    )
    top_k: int = setting(0, "sampling: only from this many of the most likely tokens; 0: from all", COUNT_OR_NONE)
    top_p: float = setting(
        1.0,
        "sampling: only from the smallest set of tokens with at least this total probability",
        Range(more_than=0, at_most=1),
    )
    seed: int = setting(1, "sampling: random seed", SEED)
    copy_spans: tuple[Span, ...] = setting((), "kinds of spans to copy unchanged into the translation")
    replace_unknown: bool = setting(
        False,
        "replace an unknown token in the output with the source word that it attends to most or, if tokens are "
        "characters, with the unknown character of the source",
    )
    ban_unknown: bool = setting(True, "never write the unknown token, unless replace_unknown is set", imported=True)
    renormalize_logits: bool = setting(
        True,
        "divide the probability of tokens that are never written among the others, instead of losing it",
        imported=True,
    )
    copy_untranslatable: bool = setting(
        True, "copy a text that has nothing to translate, such as a number, if the training pairs do so"
    )
    recase: bool = setting(
        True,
        "put a text in capitals into small letters, and its translation into capitals, if the training sources "
        "have hardly any text in capitals",
    )
    retry_repetition: bool = setting(
        True,
        "translate again, with repeated n-grams banned, if an output is more repetitive than training targets and the "
        "model is not sure of it",
    )
    batch_size: int = setting(64, "sentences decoded together", COUNT)

    REMOVED: ClassVar = {"beam_groups": 1, "diversity_penalty": 0.5}  # diverse beams, switched off

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.nbest > self.beam and not self.sample:
            raise ConfigError(f"nbest must be at most beam; got {self.describe_values('nbest', 'beam')}")
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(
                f"min_length must be at most max_length; got {self.describe_values('min_length', 'max_length')}"
            )

    def with_changes(self, changes: Mapping[str, Any]) -> "DecodeConfig":
        """Return a copy with other values. None leaves a setting unchanged. Refuses unknown names and values.

        If `nbest` exceeds the beam, the beam is widened, unless it is also given.
        """
        chosen = {name: value for name, value in changes.items() if value is not None}
        nbest = chosen.get("nbest")
        if isinstance(nbest, int) and "beam" not in chosen and not chosen.get("sample", self.sample):
            chosen["beam"] = max(self.beam, nbest)
        return build_settings(DecodeConfig, {**asdict(self), **chosen}, where="the settings of the search,")
