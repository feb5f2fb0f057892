import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from allyouneed.auto import Corpus, Draft
from allyouneed.auto.choice_rules import (
    MOST_CHOSEN,
    Size,
    choose_dropout,
    choose_ensemble,
    choose_exact_size,
    choose_parallel_models,
    choose_size,
    expected_epochs,
)
from allyouneed.auto.statistics import measure_pairs
from allyouneed.auto.task_rules import choose_vocabulary, task_kind
from allyouneed.config import TrainConfig
from allyouneed.data.pairs import Pair

RNG = random.Random(1)
SPEED = {64: 900_000, 128: 700_000, 192: 400_000, 256: 250_000}  # tokens a minute
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SOUNDS = {letter: f"{letter.upper()}H{number % 3}" for number, letter in enumerate(LETTERS)}


def word() -> str:
    return "".join(RNG.choices(LETTERS, k=RNG.randint(4, 9)))


WORDS = [word() for _ in range(900)]
NAMES, TABLES = ["title", "price", "date", "name"], ["orders", "cities", "people"]


def sentence(words: list[str]) -> str:
    return " ".join(RNG.choices(words, k=8))


def question() -> Pair:
    column, table, number = RNG.choice(NAMES), RNG.choice(TABLES), RNG.randint(1, 9_999)
    return Pair(f"find the {column} of {table} above {number}", f"SELECT {column} FROM {table} WHERE id > {number};")


def total() -> Pair:
    first, second = RNG.randint(1, 999), RNG.randint(1, 999)
    return Pair(f"{first}+{second}", str(first + second))


def pronounced(text: str) -> Pair:
    return Pair(text, " ".join(SOUNDS[letter] for letter in text))


def cyrillic(text: str) -> str:
    return "".join(letter if letter == " " else chr(ord("а") + ord(letter) - ord("a")) for letter in text)


def moved(text: str) -> str:
    return "".join(letter if letter == " " else chr(ord(letter) + 1) for letter in text)


# Korean: hundreds of different characters.
SYLLABLES = ["".join(chr(0xAC00 + 16 * RNG.randrange(600)) for _ in range(RNG.randint(1, 4))) for _ in range(900)]

TASKS = {
    "sums": [total() for _ in range(400)],
    "questions": [question() for _ in range(400)],
    "lists of numbers": [
        Pair(" ".join(map(str, some)), " ".join(map(str, sorted(some))))
        for some in (RNG.choices(range(10, 60), k=6) for _ in range(400))
    ],
    "sounds": [pronounced(word()) for _ in range(400)],
    "plain sounds": [Pair(text := word(), " ".join(SOUNDS[letter][:2] for letter in text)) for _ in range(400)],
    "letters as sounds": [Pair(text := word(), " ".join(text.upper())) for _ in range(400)],
    "letters": [Pair(text := word(), cyrillic(text)) for _ in range(400)],
    "translations": [Pair(sentence(WORDS), sentence(WORDS)) for _ in range(400)],
    "cipher": [Pair(text := sentence(WORDS), cyrillic(text)) for _ in range(400)],
    "long cipher": [Pair(text := " ".join([sentence(WORDS)] * 2), cyrillic(text)) for _ in range(400)],
    "inflections": [Pair(f"{text} V;{tag}", f"{text}{tag.lower()}") for tag in ("PST", "PRS") for text in WORDS[:200]],
    "syllables": [Pair(text := sentence(SYLLABLES), moved(text)) for _ in range(400)],
    "commands": [Pair(text := sentence(NAMES), text.upper()) for _ in range(400)],
    "spaced dates": [
        Pair(f"{day} september {1900 + day}", f"{1900 + day}-05-{day:02}") for _ in range(20) for day in range(9)
    ],
    "words without spaces": [Pair("".join(RNG.choices("あいうえおかきく", k=5)), "a i u") for _ in range(400)],
    "Chinese": [Pair("".join(chr(0x4E00 + RNG.randrange(900)) for _ in range(9)), sentence(WORDS)) for _ in range(400)],
}


@pytest.mark.parametrize(
    ("task", "kind", "vocabulary"),
    [
        ("sums", "templates", {"vocabulary": "characters"}),
        ("questions", "templates", {}),
        ("lists of numbers", "templates", {"vocabulary": "characters"}),
        ("sounds", "strings", {"source_vocabulary": "characters", "target_vocabulary": "symbols"}),
        ("plain sounds", "strings", {"source_vocabulary": "characters", "target_vocabulary": "symbols"}),
        ("letters as sounds", "strings", {"source_vocabulary": "characters", "target_vocabulary": "symbols"}),
        ("letters", "strings", {"vocabulary": "characters"}),
        ("translations", "text", {}),
        ("cipher", "strings", {"vocab_size": 1_000}),
        ("inflections", "strings", {"vocabulary": "characters", "made_up": 0.5}),
        ("syllables", "strings", {"vocabulary": "characters"}),
        ("long cipher", "text", {}),
        ("commands", "templates", {"vocabulary": "symbols"}),
        ("spaced dates", "templates", {}),
        ("words without spaces", "strings", {"source_vocabulary": "characters", "target_vocabulary": "symbols"}),
        ("Chinese", "text", {}),
    ],
)
def test_the_statistics_tell_kinds_of_tasks_apart(task: str, kind: str, vocabulary: dict[str, object]) -> None:
    statistics = measure_pairs(TASKS[task])
    assert task_kind(statistics)[0] == kind
    assert choose_vocabulary(statistics)[0] == vocabulary


def test_where_strings_are_copied_an_unknown_letter_is_copied_too() -> None:
    draft = Draft({}).with_statistics(measure_pairs(TASKS["inflections"]))
    recipe, _ = draft.complete(Corpus(pairs=400, tokens=9_000, longest=14, has_valid=True, exact=True, gpu=False))
    assert (recipe.data.made_up, recipe.decode.replace_unknown) == (0.5, True)


@pytest.mark.parametrize(
    ("task", "minutes", "tokens", "expected"),
    [
        ("sums", 0, 50_000, (0, 0)), ("questions", 10, 50_000, (0, 0)), ("sounds", 2, 400_000, (0, 0)),
        ("sounds", 10, 350_000, (0.1, 0)), ("sounds", 10, 700_000, (0, 0)), ("sounds", 30, 350_000, (0.2, 0.1)),
        ("sounds", 2, 10_000, (0.2, 0.1)), ("letters", 0, 700_000, (0.1, 0)), ("letters", 0, 10_000, (0.2, 0.1)),
    ],
)  # fmt: skip
def test_where_one_target_is_right_only_strings_that_are_repeated_are_regularized(
    task: str, minutes: float, tokens: int, expected: tuple[float, float]
) -> None:
    draft = Draft({}).with_statistics(measure_pairs(TASKS[task]))
    corpus = Corpus(5_000, tokens, 30, has_valid=True, exact=draft.is_exact, gpu=False)
    recipe, _ = draft.complete(replace(corpus, minutes=minutes, speed=SPEED) if minutes else corpus)
    assert (recipe.model.dropout, recipe.train.label_smoothing) == expected
    assert recipe.train.early_stopping_metric == "accuracy"


@pytest.mark.parametrize(
    ("task", "positions"), [("sounds", "sinusoidal-rotary"), ("questions", "rotary"), ("translations", "rotary")]
)
def test_strings_have_both_kinds_of_positions(task: str, positions: str) -> None:
    draft = Draft({}).with_statistics(measure_pairs(TASKS[task]))
    corpus = Corpus(5_000, 50_000, 30, has_valid=True, exact=draft.is_exact, gpu=False, minutes=2)
    assert draft.complete(corpus)[0].model.positions == positions


def test_outputs_may_be_longer_than_those_of_training_where_one_target_is_right() -> None:
    corpus = Corpus(5_000, 50_000, 30, has_valid=True, exact=True, gpu=False)
    draft = Draft({"decode": {}}).with_statistics(measure_pairs(TASKS["commands"]))
    assert draft.complete(corpus)[0].decode.length_ratio == 5
    assert Draft({"decode": {"length_ratio": 2.0}}).complete(corpus)[0].decode.length_ratio == 2
    assert Draft({}).complete(replace(corpus, exact=False))[0].decode.length_ratio == 1


def test_translations_are_chosen_for_as_without_statistics() -> None:
    corpus = Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=False)
    draft = Draft({}).with_statistics(measure_pairs(TASKS["translations"]))
    assert draft.complete(corpus) == Draft({}).complete(corpus)


@pytest.mark.parametrize("choose", [choose_size, choose_exact_size])
def test_a_longer_budget_buys_a_wider_model(choose: Callable[[Corpus], tuple[Size, str]]) -> None:
    corpus = Corpus(40_000, 400_000, 30, has_valid=True, exact=True, gpu=False, speed=SPEED)
    widths = [choose(replace(corpus, minutes=minutes))[0].d_model for minutes in (1, 2, 10, 15, 30, 600)]
    narrowest = 64 if choose is choose_exact_size else 128
    assert widths == [narrowest, narrowest, 128, 192, 256, 256]


@pytest.mark.parametrize("choose", [choose_size, choose_exact_size])
def test_a_model_is_no_wider_than_suits_the_number_of_pairs(choose: Callable[[Corpus], tuple[Size, str]]) -> None:
    corpus = Corpus(700, 400_000, 30, has_valid=True, exact=True, gpu=False, speed=SPEED, minutes=600)
    assert [choose(replace(corpus, pairs=pairs))[0].d_model for pairs in (700, 7_000, 40_000)] == [64, 128, 256]


def test_on_a_gpu_the_pairs_decide_and_a_slow_machine_has_a_narrower_model() -> None:
    corpus = Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=True, minutes=2)
    assert choose_size(corpus)[0].d_model == 256
    slow = {width: speed / 3 for width, speed in SPEED.items()}
    sizes = [choose_size(replace(corpus, gpu=False, minutes=30, speed=speed))[0] for speed in (SPEED, slow)]
    assert [(size.d_model, size.layers) for size in sizes] == [(256, 3), (128, 2)]
    assert expected_epochs(replace(corpus, speed=slow), 100) == pytest.approx(2 * 700_000 / 3 / 500_000)


def test_dropout_grows_with_the_epochs_that_a_budget_has_time_for() -> None:
    corpus = Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=False)
    timed = replace(corpus, speed=SPEED)
    size, _ = choose_size(corpus)
    rates = [choose_dropout(replace(timed, minutes=minutes), size, 256)[0] for minutes in (1, 20, 600)]
    assert rates == [0.0, 0.1, size.dropout]
    assert choose_dropout(corpus, size, 256)[0] == size.dropout
    assert choose_dropout(replace(timed, minutes=1, tokens=10_000), size, 256)[0] == size.dropout, "of few pairs"


@pytest.mark.parametrize(
    ("minutes", "gpu", "metric"),
    [(2, False, "loss"), (20, False, "loss"), (200, False, "chrf"), (2, True, "chrf"), (0, False, "chrf")],
)
def test_a_model_of_text_is_kept_by_its_loss_if_there_is_time_for_few_epochs(
    minutes: float, gpu: bool, metric: str
) -> None:
    speed = SPEED if minutes and not gpu else {}
    corpus = Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=gpu, minutes=minutes, speed=speed)
    assert Draft({}).complete(corpus)[0].train.early_stopping_metric == metric


def test_a_vocabulary_that_is_set_stays() -> None:
    draft = Draft({"data": {"vocab_size": 700}}).with_statistics(measure_pairs(TASKS["sounds"]))
    assert draft.tables["data"] == {"vocab_size": 700}
    assert not any(name.startswith("data.") for choice in draft.chosen for name in choice.settings)


def test_an_ensemble_has_as_many_models_as_the_time_allows_each_of_which_gets_enough_updates() -> None:
    corpus = Corpus(700, 10_000, 20, has_valid=True, exact=True, gpu=False, speed=SPEED)
    counts = [choose_ensemble(replace(corpus, minutes=minutes), 64, 1) for minutes in (1, 2, 3, 4, 5, 6, 7, 200)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (1, MOST_CHOSEN)
    for minutes, count in zip((3, 4, 5, 6, 7), counts[2:], strict=False):
        assert count == 1 or minutes * SPEED[64] / 1_024 / count >= 22 * 64  # updates of each
    assert (
        choose_ensemble(replace(corpus, minutes=4, tokens=150_000), 64, 1) == 1
    )  # they would see the pairs too rarely
    assert choose_ensemble(replace(corpus, minutes=4), 128, 1) < choose_ensemble(replace(corpus, minutes=4), 64, 1)


@pytest.mark.parametrize(
    ("cores", "models", "minutes", "count"),
    [
        (1, None, 9, 1), (2, None, 9, 2), (3, None, 9, 3), (64, None, 9, MOST_CHOSEN), (2, None, 0.1, 1),
        (1, 3, 0, 1), (2, 2, 0, 2), (2, 3, 0, 2), (3, 4, 0, 2), (4, 4, 0, 4), (8, 5, 0, 5), (4, 6, 9, 3), (9, 1, 9, 1),
    ],
)  # fmt: skip
def test_the_cores_train_as_many_models_at_the_same_time_as_end_soonest(
    cores: int, models: int | None, minutes: float, count: int
) -> None:
    assert choose_parallel_models(cores, models, minutes) == count


@pytest.mark.parametrize("at_once", [1, 2, 3, 4])
def test_there_is_a_model_for_each_core_and_more_only_if_each_gets_enough_updates(at_once: int) -> None:
    corpus = Corpus(700, 10_000, 20, has_valid=True, exact=True, gpu=False, speed=SPEED)
    counts = [choose_ensemble(replace(corpus, minutes=minutes), 64, at_once) for minutes in (0.5, 4, 8, 12, 200)]
    rounds = [choose_ensemble(replace(corpus, minutes=minutes), 64, 1) for minutes in (0.5, 4, 8, 12, 200)]
    assert counts == [at_once * min(MOST_CHOSEN // at_once, number) for number in rounds]


@pytest.mark.parametrize(("task", "is_ensemble"), [("inflections", True), ("sums", False), ("translations", False)])
def test_only_strings_get_an_ensemble_and_its_models_the_regularization_of_their_share(
    task: str, is_ensemble: bool
) -> None:
    draft = Draft({"train": {"minutes": 30}}, statistics=measure_pairs(TASKS[task]), speed=SPEED)
    corpus = Corpus(700, 100_000, 20, has_valid=True, exact=draft.is_exact, gpu=False, minutes=30, speed=SPEED)
    recipe, _ = draft.complete(corpus)
    assert (recipe.train.ensemble > 1) == is_ensemble
    alone, _ = replace(draft, tables={"train": {"minutes": 30 / recipe.train.ensemble, "ensemble": 1}}).complete(
        replace(corpus, minutes=30 / recipe.train.ensemble)
    )
    assert (alone.model.dropout, alone.train.steps) == (recipe.model.dropout, recipe.train.steps)


def test_models_at_the_same_time_do_not_share_their_minutes() -> None:
    statistics = measure_pairs(TASKS["inflections"])
    corpus = Corpus(700, 100_000, 20, has_valid=True, exact=True, gpu=False, minutes=10, speed=SPEED)

    def complete(**train: int) -> TrainConfig:
        draft = Draft({"train": {"minutes": 10, **train}}, statistics=statistics, speed=SPEED)
        return draft.complete(corpus)[0].train

    one, two = complete(ensemble=1), complete(parallel_models=2)
    assert (two.ensemble, two.steps, two.label_smoothing) == (2, one.steps, one.label_smoothing)
    assert complete(ensemble=4, parallel_models=2).steps == complete(ensemble=2).steps < one.steps
