"""Text → text: the product."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from ..bundle import Bundle
from ..config import DecodeConfig
from ..data.batch import pad
from ..decode import (
    Hypothesis,
    Phrase,
    beam_width,
    log_probabilities_of,
    longest_loop,
    longest_need,
    penalty_of,
    rules_of,
    runs_in_circles,
    search,
    source_of_each,
    step_of,
    words_of,
)
from ..device import pick_device
from ..errors import InputError
from ..nn import FastTransformer, Precision, pick_precision
from ..settings import settings
from ..text.glossary import Glossary
from ..text.sentences import cut
from ..text.tokenizer import UNK, Tokenizer
from .demands import Demands
from .translation import Flag, Link, Scored, Translation, joined

WINDOW = 32  # batches of texts that are sorted by length among themselves


Setting = bool | float | str | Sequence[str] | None
Terms = Glossary | Mapping[str, str | Iterable[str]]


class Translator:
    """A bundle at work: `Translator.load("runs/dates")("1845-01-05")` gives `January 5, 1845`."""

    def __init__(self, bundle: Bundle, *, decode: DecodeConfig | None = None, precision: str = "float32") -> None:
        """`precision` is that of the weights: "float32", "int8", or "auto" (see `pick_precision`)."""
        self.bundle = bundle
        self.model, self.tokenizer, self.writer = bundle.model, bundle.tokenizer, bundle.writer
        self.decode = decode or bundle.decode
        chosen = pick_precision(self.model) if precision == "auto" else precision
        self._fast = FastTransformer(self.model, precision=chosen)
        self._glossary = Glossary({})
        self._prepare()

    @property
    def precision(self) -> Precision:
        """That of the weights at work."""
        return self._fast.precision

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str = "auto",
        precision: str = "auto",
        glossary: Terms | None = None,
        **decode: Setting,
    ) -> Self:
        """A translator from a bundle's folder. Settings of `DecodeConfig` replace the bundle's own, as in `using`."""
        bundle = Bundle.load(Path(folder), device=pick_device(device))
        return cls(bundle, precision=precision).using(glossary=glossary, **decode)

    def using(self, *, glossary: Terms | None = None, **decode: Setting) -> Self:
        """The same model, searched otherwise: `translator.using(beam=8, nbest=3)`. None leaves a setting as it is.

        `glossary` says what terms must become, `{"term": "translation"}`; with several translations
        any one of them will do.
        """
        changed = {name: value for name, value in decode.items() if value is not None}
        other = copy(self)
        other.decode = settings(DecodeConfig, {**asdict(self.decode), **changed}, where="the settings of the search,")
        if glossary is not None:
            other._glossary = glossary if isinstance(glossary, Glossary) else Glossary(glossary)
        other._prepare()
        return other

    def _prepare(self) -> None:
        never = [self.writer.pad_id, self.writer.sos_id]
        if self.writer.unk_id is not None and not self.decode.replace_unknown:
            never.append(self.writer.unk_id)
        self._never = tuple(never)
        self._step = step_of(self._fast, never=self._never)
        self._demands = None
        if self._glossary or self.decode.keep:
            self._demands = Demands(self.writer, self._glossary, self.decode.keep)

    def __call__(self, text: str) -> str:
        """The translation of one text; an empty one stays empty."""
        return self.translate([text])[0]

    def translate(self, texts: Sequence[str], *, done: Callable[[int], None] = lambda _: None) -> list[str]:
        """The translations of many texts, in their order; `translations` says more of each."""
        return [translation.text for translation in self.translations(texts, done=done)]

    def translations(
        self,
        texts: Iterable[str],
        *,
        prefix: str = "",
        align: bool = False,
        first: int = 1,
        done: Callable[[int], None] = lambda _: None,
    ) -> Iterator[Translation]:
        """What becomes of each text, in their order; a blank one stays empty.

        The texts are read, and held in memory, a window of 32 batches at a time. Every translation
        begins with `prefix`; `align` asks for word alignments. `done` is told how many texts each
        batch finished. Refuses a character outside the vocabulary and a word longer than the model's
        `max_length`, before any text of its window is translated; the error's `line` says which text,
        the first being number `first`.
        """
        texts = iter(texts)
        while window := list(islice(texts, WINDOW * self.decode.batch)):
            yield from self._window(window, prefix, align, first, done)
            first += len(window)

    def alternatives(self, text: str, *, after: str = "", count: int = 5) -> list[Translation]:
        """Translations that begin with `after` and then go on with each of the `count` likeliest next tokens."""
        (ids,) = self._encode([text], 1)
        begun = self._ids_of_prefix(after)
        with torch.inference_mode():
            memory = self.model.encode(self._tensor([ids]))
            logits = self.model.decode(self._tensor([[self.writer.sos_id, *begun]]), memory)[0, -1]
            logits[[*self._never, self.writer.eos_id]] = -torch.inf
        words = logits.topk(min(count, len(logits) - len(self._never) - 1)).indices.tolist()
        prefixes = [[*begun, word] for word in words]
        found = self._find([ids] * len(words), self.decode, prefixes, [[] for _ in words], self._generator(1))
        return [self._translation(text, hypotheses) for hypotheses in found]

    def stream(self, text: str) -> Iterator[str]:
        """The translation piece by piece as the model writes it: greedy, or by chance if `sample` is set.

        The pieces together are the translation. What is written cannot be taken back, so a sentence
        that goes round in circles is not decoded again.
        """
        if self._nothing_to_do(text) is not None:
            yield from filter(None, [text.strip()])
            return
        for number, (_, ids) in enumerate(self._pieces(text, self._encode([text], 1)[0], 1)):
            if number:
                yield " "
            with torch.inference_mode():
                state = self._fast.start(self._tensor([ids]))
            written, shown = [], ""
            words = words_of(
                torch.inference_mode()(self._step),
                state,
                self.decode,
                sos_id=self.writer.sos_id,
                eos_id=self.writer.eos_id,
                max_lengths=self._max_lengths([ids]),
                generator=self._generator(1),
            )
            for word in words:
                written.append(word)
                # The bytes of a letter may be spread over tokens; until it is whole it shows as U+FFFD.
                text_so_far = self.writer.decode(written).rstrip("\N{REPLACEMENT CHARACTER}")
                if len(text_so_far) > len(shown):
                    yield text_so_far[len(shown) :]
                    shown = text_so_far

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Scored]:
        """What the model thinks of given translations: the log-probability of every token of each target."""
        pairs = iter(pairs)
        first = 1
        while batch := list(islice(pairs, self.decode.batch)):
            sources = self._encode([source for source, _ in batch], first)
            targets = self._encode([target for _, target in batch], first, self.writer)
            gains = self._gains(sources, targets, (self.writer.pad_id, self.writer.sos_id))
            for (source, target), ids, gained in zip(batch, targets, gains, strict=True):
                yield Scored(source, target, tuple(self.writer.pieces(ids[1:])), tuple(gained[: len(ids) - 1]))
            first += len(batch)

    def _window(
        self, texts: list[str], prefix: str, align: bool, first: int, done: Callable[[int], None]
    ) -> list[Translation]:
        begun = self._ids_of_prefix(prefix)
        ready = {place: same for place, text in enumerate(texts) if (same := self._nothing_to_do(text))}
        encoded = self._encode(["" if place in ready else text for place, text in enumerate(texts)], first)
        pieces = [
            (place, piece, ids)
            for place, (text, whole) in enumerate(zip(texts, encoded, strict=True))
            if place not in ready
            for piece, ids in self._pieces(text, whole, first + place)
        ]
        demands = [self._demands_of(piece, first + place) for place, piece, _ in pieces]
        parts: dict[int, Translation] = {}
        generator = self._generator(first)
        for batch in self._batches([len(ids) for _, _, ids in pieces], demands):
            sources = [pieces[i][2] for i in batch]
            found, flags = self._find_well(sources, [begun] * len(batch), [demands[i] for i in batch], generator)
            for i, hypotheses in zip(batch, found, strict=True):
                if not hypotheses:
                    place, piece, _ = pieces[i]
                    raise InputError(
                        f"no translation of {piece!r} says all it must within {self._limit} tokens", line=first + place
                    )
            best = [hypotheses[0] for hypotheses in found]
            links = self._links(sources, best) if align else [None] * len(batch)
            for i, hypotheses, flag, link in zip(batch, found, flags, links, strict=True):
                translation = replace(self._translation(pieces[i][1], hypotheses, flag), alignment=link)
                parts[i] = self._without_unknown(translation, pieces[i][2], hypotheses[0])
            done(len(batch))
        of_text: list[list[Translation]] = [[] for _ in texts]
        for i, (place, _, _) in enumerate(pieces):
            of_text[place].append(parts[i])
        return [ready.get(place) or joined(text, of_text[place]) for place, text in enumerate(texts)]

    def _batches(self, lengths: list[int], demands: list[list[Phrase]]) -> Iterator[list[int]]:
        """Sentences of similar length, those with demands among themselves: they have wider beams."""
        room = self.decode.batch * self.decode.beam
        for bound in (False, True):
            batch: list[int] = []
            taken = 0
            for i in sorted(range(len(lengths)), key=lengths.__getitem__):
                if bool(demands[i]) == bound:
                    width = beam_width(self.decode.beam, demands[i])
                    if batch and taken + width > room:
                        yield batch
                        batch, taken = [], 0
                    batch.append(i)
                    taken += width
            if batch:
                yield batch

    def _demands_of(self, text: str, line: int) -> list[Phrase]:
        if self._demands is None:
            return []
        try:
            return self._demands.of(text)
        except InputError as error:
            raise InputError(str(error), line=line) from error

    def _nothing_to_do(self, text: str) -> Translation | None:
        if not text or text.isspace():
            return Translation(text, "")
        if self.decode.guard and self.bundle.copies.copies(text):
            return Translation(text, text.strip(), flags=("copied",))
        return None

    def _encode(self, texts: Sequence[str], first: int, tokenizer: Tokenizer | None = None) -> list[list[int]]:
        try:
            return (tokenizer or self.tokenizer).encode_all(texts)
        except InputError as error:
            raise InputError(str(error), line=error.line and error.line + first - 1) from error

    def _ids_of_prefix(self, prefix: str) -> list[int]:
        return self.writer.encode(prefix)[1:-1] if prefix else []

    def _pieces(self, text: str, ids: list[int], line: int) -> list[tuple[str, list[int]]]:
        """A text and its ids, in pieces if it is longer than the model reads or has learned to read."""
        limit = self.model.config.max_length
        if len(ids) <= min(limit, self.bundle.longest_source or limit):
            return [(text, ids)]
        pieces = cut(text, lambda piece: len(self.tokenizer.encode(piece)) <= limit)
        encoded = self.tokenizer.encode_all(pieces)
        for piece, piece_ids in zip(pieces, encoded, strict=True):
            if len(piece_ids) > limit:
                raise InputError(
                    f"{piece[:30]!r}… has {len(piece_ids)} tokens and no place to cut it; "
                    f"this model reads at most {limit}",
                    line=line,
                )
        return list(zip(pieces, encoded, strict=True))

    def _find_well(
        self,
        sources: list[list[int]],
        prefixes: list[list[int]],
        demands: list[list[Phrase]],
        generator: torch.Generator,
    ) -> tuple[list[list[Hypothesis]], list[tuple[Flag, ...]]]:
        """What is found for each source, and flags. What goes round in circles is decoded again."""
        found = self._find(sources, self.decode, prefixes, demands, generator)
        flags: list[tuple[Flag, ...]] = [() for _ in sources]
        for b, source in enumerate(sources):
            if self.decode.guard and found[b] and runs_in_circles(found[b][0].ids, source):
                blocked = replace(self.decode, no_repeat=max(3, longest_loop(found[b][0].ids).period))
                (again,) = self._find([source], blocked, [prefixes[b]], [demands[b]], generator)
                # Where the demands themselves repeat, nothing may be left.
                found[b], flags[b] = again or found[b], ("repeats",)
        return found, flags

    @torch.inference_mode()
    def _find(
        self,
        sources: list[list[int]],
        config: DecodeConfig,
        prefixes: list[list[int]],
        demands: list[list[Phrase]],
        generator: torch.Generator,
    ) -> list[list[Hypothesis]]:
        least = [len(prefix) + longest_need(phrases) for prefix, phrases in zip(prefixes, demands, strict=True)]
        max_lengths = self._max_lengths(sources, least)
        shortest = [max(config.min_length, ceil(config.min_ratio * (len(ids) - 2))) for ids in sources]
        found = search(
            self._step,
            self._fast.start(self._tensor(sources)),
            config,
            sos_id=self.writer.sos_id,
            eos_id=self.writer.eos_id,
            max_lengths=max_lengths,
            rules=rules_of(
                config,
                eos_id=self.writer.eos_id,
                min_lengths=torch.tensor(shortest, device=self._device),
                prefixes=prefixes,
            ),
            demands=demands,
            seams=self._demands.seams if self._demands else None,
            generator=generator,
        )
        if config.repetition_penalty == 1 and config.groups == 1:
            return found
        return self._judged_anew(sources, found, config)

    def _judged_anew(
        self, sources: list[list[int]], found: list[list[Hypothesis]], config: DecodeConfig
    ) -> list[list[Hypothesis]]:
        """What was found, its log-probabilities without what a rule took off."""
        ids = [sources[b] for b, hypotheses in enumerate(found) for _ in hypotheses]
        targets = [self._target(hypothesis) for hypotheses in found for hypothesis in hypotheses]
        gains = iter(self._gains(ids, targets, self._never))
        anew = []
        for hypotheses in found:
            totals = [sum(next(gains)) for _ in hypotheses]
            anew.append(
                [
                    hypothesis._replace(log_probability=total, score=total / penalty_of(config, hypothesis))
                    for hypothesis, total in zip(hypotheses, totals, strict=True)
                ]
            )
        return anew

    @torch.inference_mode()
    def _gains(self, sources: list[list[int]], targets: list[list[int]], never: Sequence[int]) -> list[list[float]]:
        memory = self.model.encode(self._tensor(sources))
        return log_probabilities_of(self.model, self._tensor(targets), memory, never=never).tolist()

    def _without_unknown(self, translation: Translation, source: list[int], best: Hypothesis) -> Translation:
        """The best translation, each unknown word replaced by the source's it looked at (Luong et al., 2015)."""
        unknown = self.writer.unk_id
        if unknown is None or unknown not in best.ids:
            return translation
        words, read = translation.source.split(), _word_of_each(source, self.tokenizer)
        ((*places,),) = self._places([source], [best])
        looked_at = iter([read[place] for place, i in zip(places, best.ids, strict=False) if i == unknown])
        text = re.sub(re.escape(UNK), lambda _: words[min(next(looked_at), len(words) - 1)], translation.text)
        return replace(translation, text=text)

    def _links(self, sources: list[list[int]], found: list[Hypothesis]) -> list[tuple[Link, ...] | None]:
        places = self._places(sources, found)
        links: list[tuple[Link, ...] | None] = []
        for ids, hypothesis, places_of_one in zip(sources, found, places, strict=True):
            read, written = _word_of_each(ids, self.tokenizer), _word_of_each(hypothesis.ids, self.writer)
            links.append(
                tuple(sorted({(read[place], word) for place, word in zip(places_of_one, written, strict=False)}))
            )
        return links

    @torch.inference_mode()
    def _places(self, sources: list[list[int]], found: list[Hypothesis]) -> list[list[int]]:
        """For every id found, the place in its source that it looked at."""
        source = self._tensor(sources)
        target = self._tensor([self._target(hypothesis) for hypothesis in found])
        is_word = (
            (source != self.tokenizer.pad_id) & (source != self.tokenizer.sos_id) & (source != self.tokenizer.eos_id)
        )
        return source_of_each(self.model, target, self.model.encode(source), is_word).tolist()

    def _translation(self, source: str, found: list[Hypothesis], flags: tuple[Flag, ...] = ()) -> Translation:
        texts = self.writer.decode_all([hypothesis.ids for hypothesis in found])
        best, *others = (
            Translation(
                source,
                text,
                hypothesis.log_probability,
                len(hypothesis.ids) + hypothesis.finished,
                flags if hypothesis.finished else (*flags, "unfinished"),
            )
            for text, hypothesis in zip(texts, found, strict=True)
        )
        return replace(best, alternatives=tuple(others))

    def _target(self, hypothesis: Hypothesis) -> list[int]:
        end = [self.writer.eos_id] if hypothesis.finished else []
        return [self.writer.sos_id, *hypothesis.ids, *end]

    def _max_lengths(self, sources: list[list[int]], least: list[int] | None = None) -> Tensor:
        """How many ids, the end sign included, each translation may have; `least` even if that is more."""
        longest = [int(self.decode.length_ratio * (len(ids) - 2)) + self.decode.extra_length for ids in sources]
        if least:
            longest = [max(length, need) for length, need in zip(longest, least, strict=True)]
        return torch.tensor(longest).clamp(1, self._limit).to(self._device)

    @property
    def _limit(self) -> int:
        limit = self.model.config.max_length
        return min(limit, self.decode.max_length or limit)

    def _tensor(self, rows: list[list[int]]) -> Tensor:
        return pad(rows, self.tokenizer.pad_id).to(self._device)

    def _generator(self, first: int) -> torch.Generator:
        """Chance for the texts from number `first` on: the same whichever ran before, so a run can go on there."""
        return torch.Generator(self._device).manual_seed(self.decode.seed * 1_000_003 + first)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def _word_of_each(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    """For every id, which word of the text it stands in, the text split at blanks."""
    beginnings = tokenizer.decode_all([ids[:end] for end in range(1, len(ids) + 1)])
    return [max(0, len(beginning.split()) - 1) for beginning in beginnings]
