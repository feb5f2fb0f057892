"""A beam that must say phrases, held against brute force."""

import math
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.config import DecodeConfig
from allyouneed.decode import BeamOptions, Hypothesis, beam_options, beam_search, length_penalty
from allyouneed.translator.constrained import WIDEST, beam_width, constrained_beam_search
from allyouneed.translator.constraint_state import (
    ConstraintState,
    PhraseConstraint,
    WordBoundaries,
    max_constrained_length,
)
from tables import EOS, SOS, Table, limits, step_by_hand

A, B, C, D = 2, 3, 4, 5
NO_SEAMS = WordBoundaries()


def search(
    table: Table,
    demands: list[list[PhraseConstraint]],
    lengths: list[int],
    *,
    beam: int,
    seams: WordBoundaries = NO_SEAMS,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    return constrained_beam_search(
        table.start(*range(len(lengths))),
        limits(*lengths),
        BeamOptions(beam=beam, alpha=0.6, nbest=nbest),
        constraints=demands,
        boundaries=seams,
    )


def says(ids: tuple[int, ...], phrases: list[PhraseConstraint], seams: WordBoundaries) -> bool:
    """Return True if all phrases are in `ids`, by trying every place: each in a place of its own, no end glued."""
    required = [phrase for phrase in phrases for _ in range(phrase.times)]
    if not required:
        return True
    first, *rest = required
    owed = [PhraseConstraint(phrase.spellings) for phrase in rest]
    for spelling in first.spellings:
        for i in range(len(ids) - len(spelling) + 1):
            j = i + len(spelling)
            whole = not (i and seams.same_word(ids[i - 1], ids[i])) and not (
                j < len(ids) and seams.same_word(ids[j - 1], ids[j])
            )
            if ids[i:j] == spelling and whole and _says_around(ids[:i], ids[j:], owed, seams):
                return True
    return False


def _says_around(
    left: tuple[int, ...], right: tuple[int, ...], phrases: list[PhraseConstraint], seams: WordBoundaries
) -> bool:
    for chosen in range(2 ** len(phrases)):
        before = [phrase for n, phrase in enumerate(phrases) if chosen >> n & 1]
        after = [phrase for n, phrase in enumerate(phrases) if not chosen >> n & 1]
        if says(left, before, seams) and says(right, after, seams):
            return True
    return False


DEMANDS = [
    [PhraseConstraint(((A,),))],
    [PhraseConstraint(((A, B),))],
    [PhraseConstraint(((A, A),)), PhraseConstraint(((B,),))],
    [PhraseConstraint(((A,),), times=2)],
    [PhraseConstraint(((A, B), (C,))), PhraseConstraint(((B,),))],
    [PhraseConstraint(((A,),)), PhraseConstraint(((A, B),))],
]


@pytest.mark.parametrize(
    "seams", [NO_SEAMS, WordBoundaries(frozenset({B, C}), frozenset({A, B}))], ids=["loose", "sticky"]
)
@pytest.mark.parametrize("phrases", DEMANDS)
@pytest.mark.parametrize("seed", range(2))
def test_a_beam_as_wide_as_the_space_finds_the_best_sentences_that_say_all(
    seed: int, phrases: list[PhraseConstraint], seams: WordBoundaries
) -> None:
    table, longest = Table(vocabulary=6, seed=seed), 5
    scored = sorted(
        (
            (table.log_probability(0, sentence_ids) / length_penalty(len(sentence_ids), alpha=0.6), sentence_ids)
            for sentence_ids in table.every_sentence(longest)
            if says(sentence_ids[:-1], phrases, seams)
        ),
        reverse=True,
    )
    (result,) = search(table, [phrases], [longest], beam=4**4, seams=seams, nbest=3)
    assert [tuple(hypothesis.ids) for hypothesis in result] == [sentence_ids[:-1] for _, sentence_ids in scored[:3]]
    for hypothesis, (score, _) in zip(result, scored, strict=False):
        assert math.isclose(hypothesis.score, score, rel_tol=1e-5)


PHRASES = st.lists(
    st.builds(
        PhraseConstraint,
        st.lists(st.lists(st.integers(2, 8), min_size=1, max_size=3).map(tuple), min_size=1, max_size=2).map(tuple),
        st.integers(1, 2),
    ),
    max_size=3,
)
SEAMS = st.builds(WordBoundaries, st.frozensets(st.integers(2, 7)), st.frozensets(st.integers(2, 7)))


@given(st.integers(0, 10_000), st.lists(PHRASES, min_size=1, max_size=3), st.integers(1, 3), SEAMS)
@settings(deadline=None, max_examples=40)
def test_whatever_is_demanded_is_said(
    seed: int, demands: list[list[PhraseConstraint]], beam: int, seams: WordBoundaries
) -> None:
    """A narrow beam too, within `max_constrained_length` ids: word 9 is never sticky, so there is always a way."""
    table = Table(vocabulary=10, seed=seed)
    lengths = [max_constrained_length(phrases) + 2 for phrases in demands]
    for phrases, limit, result in zip(
        demands, lengths, search(table, demands, lengths, beam=beam, seams=seams), strict=True
    ):
        (best,) = result
        assert says(tuple(best.ids), phrases, seams)
        assert len(best.ids) + best.finished <= limit


@given(st.integers(0, 10_000), st.lists(PHRASES, min_size=2, max_size=3), st.integers(1, 3))
@settings(deadline=None, max_examples=15)
def test_many_together_are_as_one_by_one(seed: int, demands: list[list[PhraseConstraint]], beam: int) -> None:
    table = Table(vocabulary=10, seed=seed)
    lengths = [max_constrained_length(phrases) + 2 for phrases in demands]
    together = search(table, demands, lengths, beam=beam)
    for b, (phrases, limit) in enumerate(zip(demands, lengths, strict=True)):
        (alone,) = constrained_beam_search(
            table.start(b),
            limits(limit),
            BeamOptions(beam=beam, alpha=0.6),
            constraints=[phrases],
            boundaries=NO_SEAMS,
        )
        assert [hypothesis.ids for hypothesis in alone] == [hypothesis.ids for hypothesis in together[b]]


@given(PHRASES, st.lists(st.integers(2, 8), max_size=12), SEAMS)
@settings(deadline=None, max_examples=200)
def test_readings_left_out_change_nothing(
    phrases: list[PhraseConstraint], words: list[int], seams: WordBoundaries
) -> None:
    """Held against all readings there are."""
    progress = [ConstraintState.begin(phrases, seams, sos_id=SOS)]
    for word in words:
        progress.append(progress[-1].after(word))
    with mock.patch("allyouneed.translator.constraint_state._undominated", frozenset):
        every = [ConstraintState.begin(phrases, seams, sos_id=SOS)]
        for word in words:
            every.append(every[-1].after(word))
    for fewer, whole in zip(progress, every, strict=True):
        assert fewer.readings <= whole.readings
        assert (fewer.is_complete, fewer.rank) == (whole.is_complete, whole.rank)
        assert fewer.next_tokens().tokens <= whole.next_tokens().tokens


def test_many_phrases_have_few_readings() -> None:
    phrases = [PhraseConstraint(((word, word + 1),)) for word in range(2, 32, 2)]
    progress = ConstraintState.begin(phrases, NO_SEAMS, sos_id=SOS)
    for phrase in phrases:
        for word in phrase.spellings[0]:
            progress = progress.after(word)
            assert len(progress.readings) <= 3
    assert progress.is_complete


def test_the_beam_is_never_widened_beyond_a_bound() -> None:
    phrases = [PhraseConstraint(((A, B),), times) for times in (1, 30)]
    assert [beam_width(4, phrases[:1]), beam_width(4, phrases), beam_width(60, phrases)] == [8, WIDEST, 60]


def test_no_demands_are_a_beam_as_any_other_or_better() -> None:
    for seed in range(20):
        table = Table(8, seed)
        ((free,),) = search(table, [[]], [6], beam=300)
        ((best,),) = beam_search(table.start(0), limits(6), BeamOptions(beam=300, alpha=0.6))
        assert free.score >= best.score - 1e-6


def test_a_bound_too_low_for_the_demands_gives_nothing() -> None:
    (result,) = search(Table(6, 0), [[PhraseConstraint(((A, B, C),))]], [2], beam=4)
    assert result == []


def test_a_phrase_inside_a_longer_word_does_not_count() -> None:
    """A and B stick together: "AB" is another word than A."""
    seams = WordBoundaries(starts_in_word=frozenset({B}), ends_in_word=frozenset({A}))
    assert not says((A, B), [PhraseConstraint(((A,),))], seams)
    for seed in range(10):
        ((best,),) = search(Table(6, seed), [[PhraseConstraint(((A,),))]], [5], beam=2, seams=seams)
        assert says(tuple(best.ids), [PhraseConstraint(((A,),))], seams)


@pytest.mark.parametrize("beam", [2, 3, 4])
def test_bad_sentences_that_end_early_do_not_stop_the_search(beam: int) -> None:
    """The likely sentence has eight words; shorter ones end at every step, each with a probability of 1 %."""
    after = {(A,) * length: {A: 0.98, B: 0.01, EOS: 0.01} for length in range(1, 8)} | {(): {A: 0.98, EOS: 0.02}}
    ((result,),) = constrained_beam_search(
        step_by_hand(after, 4),
        limits(20),
        beam_options(DecodeConfig(beam=beam)),
        constraints=[[PhraseConstraint(((A,),))]],
        boundaries=NO_SEAMS,
    )
    assert result.ids == [A] * 8
