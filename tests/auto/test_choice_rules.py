import random
from dataclasses import replace

import pytest

from allyouneed.auto import Corpus, Draft
from allyouneed.auto.choice_rules import EXACT_SIZES, choose_dropout, choose_exact_size, choose_size, expected_epochs
from allyouneed.auto.statistics import measure_pairs
from allyouneed.auto.task_rules import choose_vocabulary, task_kind
from allyouneed.data.pairs import Pair

RNG = random.Random(1)
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
    "sounds": [pronounced(word()) for _ in range(400)],
    "plain sounds": [Pair(text := word(), " ".join(SOUNDS[letter][:2] for letter in text)) for _ in range(400)],
    "letters as sounds": [Pair(text := word(), " ".join(text.upper())) for _ in range(400)],
    "letters": [Pair(text := word(), cyrillic(text)) for _ in range(400)],
    "translations": [Pair(sentence(WORDS), sentence(WORDS)) for _ in range(400)],
    "cipher": [Pair(text := sentence(WORDS), cyrillic(text)) for _ in range(400)],
    "long cipher": [Pair(text := " ".join([sentence(WORDS)] * 2), cyrillic(text)) for _ in range(400)],
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
        ("sounds", "strings", {"source_vocabulary": "characters", "target_vocabulary": "symbols"}),
        ("plain sounds", "strings", {"source_vocabulary": "characters", "target_vocabulary": "symbols"}),
        ("letters as sounds", "strings", {"source_vocabulary": "characters", "target_vocabulary": "symbols"}),
        ("letters", "strings", {"vocabulary": "characters"}),
        ("translations", "text", {}),
        ("cipher", "strings", {"vocab_size": 1_000}),
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


@pytest.mark.parametrize(
    ("task", "minutes", "tokens", "dropout"),
    [
        ("sums", 0, 50_000, 0), ("questions", 10, 50_000, 0), ("sounds", 2, 50_000, 0), ("sounds", 10, 50_000, 0.1),
        ("sounds", 10, 700_000, 0), ("sounds", 30, 350_000, 0.1), ("letters", 0, 700_000, 0.1),
    ],
)  # fmt: skip
def test_where_one_target_is_right_only_long_trainings_of_strings_have_dropout(
    task: str, minutes: float, tokens: int, dropout: float
) -> None:
    draft = Draft({}).with_statistics(measure_pairs(TASKS[task]))
    corpus = Corpus(5_000, tokens, 30, has_valid=True, exact=draft.is_exact, gpu=False, minutes=minutes)
    recipe, _ = draft.complete(corpus)
    assert (recipe.model.dropout, recipe.train.label_smoothing) == (dropout, 0)
    assert recipe.train.early_stopping_metric == "exact"


@pytest.mark.parametrize(("pairs", "expected"), [(700, (0.2, 0.1)), (8_000, (0.0, 0.0))])
@pytest.mark.parametrize("minutes", [2, 4])
def test_few_strings_are_regularized_in_any_budget(pairs: int, expected: tuple[float, float], minutes: float) -> None:
    draft = Draft({}).with_statistics(measure_pairs(TASKS["sounds"]))
    corpus = Corpus(pairs, 50_000, 30, has_valid=True, exact=True, gpu=False, minutes=minutes)
    recipe, _ = draft.complete(corpus)
    assert (recipe.model.dropout, recipe.train.label_smoothing) == expected


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


def test_a_longer_budget_buys_a_wider_model() -> None:
    widths = [
        choose_exact_size(Corpus(40_000, 400_000, 30, has_valid=True, exact=True, gpu=False, minutes=minutes))[
            0
        ].d_model
        for minutes in (1, 2, 10, 30, 600)
    ]
    assert widths == sorted(widths)
    assert widths[0] == EXACT_SIZES[min(EXACT_SIZES)]["d_model"]


@pytest.mark.parametrize(
    ("minutes", "gpu", "width"), [(2, False, 128), (10, False, 192), (22, False, 192), (90, False, 256), (2, True, 256)]
)
def test_a_short_budget_has_a_narrower_model_of_text_without_a_gpu(minutes: float, gpu: bool, width: int) -> None:
    size, _ = choose_size(Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=gpu, minutes=minutes))
    assert size.d_model == width


def test_a_budget_counts_as_minutes_of_the_core_that_was_measured() -> None:
    corpus = Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=False, minutes=10)
    slow, short = replace(corpus, cores=0.4), replace(corpus, minutes=4)
    for choose in (choose_size, choose_exact_size):
        assert choose(slow) == choose(short) != choose(corpus)
    assert expected_epochs(slow, 128) == expected_epochs(short, 128)


def test_dropout_grows_with_the_epochs_that_a_budget_has_time_for() -> None:
    corpus = Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=False)
    size, _ = choose_size(corpus)
    rates = [choose_dropout(replace(corpus, minutes=minutes), size, 256)[0] for minutes in (1, 20, 600)]
    assert rates == [0.0, 0.1, size.dropout]
    assert choose_dropout(corpus, size, 256)[0] == size.dropout
    assert choose_dropout(replace(corpus, minutes=1, tokens=10_000), size, 256)[0] == size.dropout, "of few pairs"


@pytest.mark.parametrize(
    ("minutes", "gpu", "metric"),
    [(2, False, "loss"), (20, False, "loss"), (200, False, "chrf"), (2, True, "chrf"), (0, False, "chrf")],
)
def test_a_model_of_text_is_kept_by_its_loss_if_there_is_time_for_few_epochs(
    minutes: float, gpu: bool, metric: str
) -> None:
    corpus = Corpus(30_000, 500_000, 60, has_valid=True, exact=False, gpu=gpu, minutes=minutes)
    assert Draft({}).complete(corpus)[0].train.early_stopping_metric == metric


def test_a_vocabulary_that_is_set_stays() -> None:
    draft = Draft({"data": {"vocab_size": 700}}).with_statistics(measure_pairs(TASKS["sounds"]))
    assert draft.tables["data"] == {"vocab_size": 700}
    assert not any(name.startswith("data.") for choice in draft.chosen for name in choice.settings)


def test_lengths_are_no_fault_of_a_pair_where_one_target_is_right() -> None:
    kept = {"max_length_ratio": 0}
    for task, tables, expected in (
        ("commands", {}, kept), ("sounds", {}, kept), ("translations", {}, {}),
        ("commands", {"clean": {"max_length_ratio": 3.0}}, {"max_length_ratio": 3.0}),
    ):  # fmt: skip
        draft = Draft(tables).with_statistics(measure_pairs(TASKS[task]))
        assert draft.tables.get("clean", {}) == expected
