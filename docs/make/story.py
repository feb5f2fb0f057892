"""Why attention, in seven pictures, and the whole model in three: a date, and in most beside it a sentence of words.

The date is `1845-01-05`, which becomes `January 5, 1845`; the sentence is `the red house`, in Italian `la casa rossa`.
In both the first word of the output is the last or the middle one of the input. `STORY` has all pictures.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from drawing import BLUE, GREEN, ORANGE, PURPLE, Drawing

WIDTH = 420  # of a picture, so that a phone shows it whole
SENTENCES = {"1845-01-05": "January 5, 1845", "the red house": "la casa rossa"}
WORDS = {"house": 5, "houses": 2, "red": 3, "reads": 1}  # how often each occurs
SECOND_LAYER = Path(__file__).with_name("second_layer.json")
FAR_WORD = Path(__file__).with_name("far_word.json")
TABLES = {  # what is to be written → keys, values, and how well each key fits the query
    "the month": (("year", "month", "day"), ("1845", "01", "05"), "January", (0.0, 3.0, 1.0)),
    "the noun": (("the", "red", "house"), ("article", "red", "house"), "casa", (0.0, 1.0, 3.0)),
}


def softmax(scores: Sequence[float]) -> list[float]:
    """Compute the power e^score of each, divided by the sum of all."""
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def row(
    picture: Drawing, x: float, y: float, text: str, *, colour: str = BLUE, strong: Sequence[int] = ()
) -> list[float]:
    """Draw a box for each token of a text, a character or a word, centred at y. Returns the middle x of each."""
    tokens = list(text) if text[0].isdigit() else text.split()
    middles = []
    for index, token in enumerate(tokens):
        width = 17 if len(token) == 1 else 8 * len(token) + 10
        picture.box(x, y - 12, width, 24, token, colour=colour, strong=index in strong)
        middles.append(x + width / 2)
        x += width + 2
    return middles


def vectors(picture: Drawing, middles: Sequence[float], y: float, colour: str = GREEN) -> None:
    """Draw a column of three numbers, without their values, above or below each token."""
    for x in middles:
        for cell in range(3):
            picture.box(x - 7, y + 8 * cell, 14, 8, colour=colour)


def draw_whole() -> Drawing:
    """Draw a text going in, and its translation coming out."""
    picture = Drawing(WIDTH, 120, "A date or a sentence goes into the Transformer, and its other form comes out")
    for y, (source, target) in zip((30, 90), SENTENCES.items(), strict=True):
        picture.box(4, y - 15, 116, 30, source, colour=BLUE)
        picture.arrow((120, y), (146, y))
        picture.arrow((262, y), (286, y))
        picture.box(288, y - 15, 128, 30, target, colour=ORANGE)
    picture.box(148, 4, 114, 112, "Transformer", colour=GREEN, strong=True)
    return picture


def draw_halves() -> Drawing:
    """Draw the encoder, which reads everything once, and the decoder, which writes one token at a time."""
    picture = Drawing(
        WIDTH, 250, "The encoder makes the memory; from it the decoder writes one character after another"
    )
    middles = row(picture, 6, 232, "1845-01-05")
    picture.arrow((100, 220), (100, 196))
    picture.box(6, 154, 188, 42, "encoder\nreads everything once", colour=BLUE)
    picture.arrow((100, 154), (100, 134))
    vectors(picture, middles, 106)
    picture.text(110, 92, "memory: a vector per token", style="small")
    picture.box(244, 154, 152, 42, "decoder\nwrites one at a time", colour=ORANGE)
    picture.arrow((194, 118), (220, 118), (220, 175), (242, 175))
    picture.box(270, 220, 100, 26, "January", colour=ORANGE)
    picture.text(262, 233, "so far", anchor="end", style="small")
    picture.arrow((320, 220), (320, 198))
    picture.arrow((320, 154), (320, 130))
    for x, token in ((248, "5"), (298, "1"), (348, "…")):
        picture.box(x, 102, 44, 26, token, colour=ORANGE, strong=token == "5")
    picture.text(332, 88, "the most probable", style="small")
    picture.arrow((270, 102), (270, 60), (410, 60), (410, 233), (372, 233))
    picture.text(340, 46, "is appended", style="small")
    return picture


def draw_blocks() -> Drawing:
    """Draw a block of attention and a feed-forward network on a vector for each character."""
    picture = Drawing(
        WIDTH, 372, "Inside the encoder: vectors, and blocks in which they exchange and process information"
    )
    middles = [228 + 35 * (index - 4.5) for index in range(10)]
    picture.text(228, 12, "memory", bold=True)
    for x, character in zip(middles, "1845-01-05", strict=True):
        picture.box(x - 11, 342, 22, 24, character, colour=BLUE)
    vectors(picture, middles, 24)
    vectors(picture, middles, 262)
    picture.box(40, 66, 376, 174)
    picture.text(12, 153, "N×", anchor="start", bold=True)
    for y, height, text, colour in (
        (78, 22, "add & norm", ""),
        (116, 30, "feed-forward: each token separately", BLUE),
        (162, 22, "add & norm", ""),
        (200, 30, "attention: tokens exchange information", ORANGE),
        (304, 22, "embedding + position", PURPLE),
    ):
        picture.box(50, y, 356, height, text, colour=colour)
    for x in middles:
        for start, end in ((78, 50), (116, 102), (162, 148), (200, 186), (262, 232), (304, 288), (342, 328)):
            picture.arrow((x, start), (x, end))
    return picture


def draw_one_vector() -> Drawing:
    """Draw everything through one vector."""
    picture = Drawing(WIDTH, 172, "Before attention: all of a text had to fit into one vector, whatever its length")
    picture.text(4, 14, "before attention: everything through one vector", anchor="start", bold=True)
    for y, (source, target) in zip((56, 118), SENTENCES.items(), strict=True):
        middles = row(picture, 4, y, source)
        right = middles[-1] + (10 if source[0].isdigit() else 27)
        picture.arrow((right, y), (210, y))
        for cell in range(4):
            picture.box(213 + 15 * cell, y - 8, 15, 16, colour="#777777", strong=True)
        picture.arrow((274, y), (290, y))
        picture.box(292, y - 13, 124, 26, target, colour=ORANGE)
    picture.text(243, 154, "one vector", style="small")
    return picture


def lookup(picture: Drawing, y: float, query: str, weights: Sequence[float] | None) -> None:
    """Draw a table of keys and values, the entry that a query finds in it, and the word that is then written."""
    keys, values, written, _ = TABLES[query]
    best = keys.index("month" if "month" in keys else "house")
    right = 308 if weights else 260
    middle = y + 40 if weights else y + 28 * best + 12
    picture.box(4, y + 27, 84, 26, query, colour=ORANGE)
    for index, (key, value) in enumerate(zip(keys, values, strict=True)):
        top = y + 28 * index
        picture.box(140, top, 56, 24, key, colour=BLUE, strong=index == best)
        picture.box(248 if weights else 200, top, 60, 24, value, colour=GREEN, strong=index == best)
        if weights:
            picture.text(222, top + 12, f"{weights[index]:.3f}", style="small", bold=index == best)
        if weights or index == best:
            picture.arrow((88, y + 40), (138, top + 12))
            picture.arrow((right, top + 12), (right + 34, middle))
    picture.box(right + 36, middle - 13, 72, 26, written, colour=ORANGE)


def draw_lookup() -> Drawing:
    """Keep every vector, and look up the one that is needed."""
    picture = Drawing(WIDTH, 226, "A lookup: the query equals one key, and the value of this key is the answer")
    for x, name in ((46, "query"), (168, "keys"), (230, "values"), (332, "written")):
        picture.text(x, 14, name, style="small", bold=True)
    lookup(picture, 30, "the month", None)
    lookup(picture, 134, "the noun", None)
    return picture


def draw_soft_lookup() -> Drawing:
    """Draw a lookup where every key fits a little; softmax makes weights of it, and the answer is a mean."""
    picture = Drawing(
        WIDTH, 226, "A soft lookup: every key gets a weight, and the answer is the weighted mean of the values"
    )
    for x, name in ((46, "query"), (168, "keys"), (222, "weights"), (278, "values"), (380, "written")):
        picture.text(x, 14, name, style="small", bold=True)
    for y, query in ((30, "the month"), (134, "the noun")):
        lookup(picture, y, query, softmax(TABLES[query][3]))
    return picture


def draw_maps() -> Drawing:
    """Draw three learned maps that make a query, a key and a value of one vector."""
    picture = Drawing(WIDTH, 286, "Three learned matrices make a query, a key and a value of the vector of each token")
    rows = (
        ("W_Q", "query", "what it looks for", "5: the last dash before me", "casa: the article before me", ORANGE),
        ("W_K", "key", "what it is found by", "5: I am a digit", "casa: I am a noun", BLUE),
        ("W_V", "value", "what it passes on", "5: I am a five", "casa: I am feminine", GREEN),
    )
    picture.box(4, 127, 72, 36, "vector of\n5 or casa", colour=PURPLE)
    for index, (matrix, name, meaning, date, words, colour) in enumerate(rows):
        middle = 49 + 96 * index
        picture.arrow((76, 145), (104, middle))
        picture.box(106, middle - 14, 50, 28, matrix, colour=colour, strong=True)
        picture.arrow((156, middle), (184, middle))
        picture.box(186, middle - 40, 230, 80, colour=colour)
        picture.text(301, middle - 24, f"{name}: {meaning}", bold=True, style="small")
        picture.text(301, middle + 2, date, style="small")
        picture.text(301, middle + 24, words, style="small")
    return picture


def draw_heads() -> Drawing:
    """Draw two heads that look for two things at once."""
    picture = Drawing(WIDTH, 330, "Two heads: one finds what to write, the other what it depends on")
    cases = (
        (30, "1845-01-05", 9, 7, "writes the 5", "which digit?", "year, month or day?"),
        (186, "the red house", 1, 2, "writes rossa", "which word?", "which noun is red?"),
    )
    for top, source, first, second, title, one, two in cases:
        picture.text(4, top - 16, title, anchor="start", bold=True)
        middles = row(picture, 216 if source[0].isdigit() else 262, top + 52, source, strong=(first, second))
        for y, head, text, index, colour in (
            (top + 12, "head 1", one, first, ORANGE),
            (top + 92, "head 2", two, second, GREEN),
        ):
            picture.box(4, y - 18, 160, 36, f"{head}:\n{text}", colour=colour)
            down = 39 if y < top + 52 else 65
            picture.arrow((164, y), (middles[index], y), (middles[index], top + down))
    picture.text(4, 318, "our words: a head learns numbers, not questions", anchor="start", style="small")
    return picture


def draw_masks() -> Drawing:
    """Draw what each row may attend to."""
    picture = Drawing(WIDTH, 156, "The mask: before it writes a token, the decoder sees only those before it")
    for x, tokens, written in (
        (60, ("start", "J", "a"), ("J", "a", "n")),
        (274, ("start", "la", "casa"), ("la", "casa", "rossa")),
    ):
        picture.text(x - 8, 38, "writes", anchor="end", style="small", bold=True)
        picture.text(x + 69, 12, "may see", style="small", bold=True)
        for column, token in enumerate(tokens):
            picture.text(x + 23 + 46 * column, 38, token, style="code")
        cells = [["yes" if column <= index else "" for column in range(3)] for index in range(3)]
        picture.numbers(x, 52, cells, names=written, colour=GREEN)
        for index in range(3):
            for column in range(index + 1, 3):
                picture.box(x + 46 * column, 52 + 26 * index, 46, 26, colour="#777777", strong=True)
    return picture


def draw_shifted_right() -> Drawing:
    """Draw what the decoder reads: in training the right answer, shifted by one; afterwards what it has written."""
    picture = Drawing(
        WIDTH, 356, "In training the decoder reads the right answer, shifted right; on its own, what it has written"
    )
    left, step, right = 106, 40, 106 + 40 * 7
    answer, written, wrong = "January", "Manuary", "March 5"
    cases = (
        (40, "training: teacher forcing", (("right answer", answer, GREEN), ("it writes", written, ORANGE)), answer),
        (236, "on its own", (("it writes", wrong, ORANGE),), wrong),
    )
    for top, title, rows, source in cases:
        picture.text(4, top - 22, title, anchor="start", bold=True)
        colour = rows[0][2]
        for index, (name, letters, row_colour) in enumerate(rows):
            letters_row(picture, left, top + 40 * index, name, letters, row_colour, wrong=answer)
        below = top + 40 * len(rows)
        for column in range(7):
            x = left + step * (column + 0.5)
            picture.arrow((x, below + 2), (x, below - 14))
            picture.arrow((x, below + 44), (x, below + 30))
        picture.box(left, below + 2, 7 * step, 28, "decoder", colour=BLUE)
        letters_row(picture, left, below + 46, "it reads", ["start", *source[:6]], colour)
        if len(rows) > 1:
            picture.text(right - 4, top - 14, "shifted right", anchor="end", style="small")
        picture.arrow((right, top + 13), (right + 20, top + 13), (right + 20, below + 59), (right + 2, below + 59))
    return picture


def letters_row(
    picture: Drawing, x: float, y: float, name: str, letters: Sequence[str], colour: str, *, wrong: str = ""
) -> None:
    """Draw a row of letters with its name at the left; letters that differ from those of `wrong` stand out."""
    picture.text(x - 8, y + 13, name, anchor="end", style="small")
    for index, letter in enumerate(letters):
        differs = index < len(wrong) and letter != wrong[index]
        picture.box(x + 40 * index, y, 40, 26, letter.replace(" ", "␣"), colour=colour, strong=differs)


def byte_pairs(words: Mapping[str, int], joins: int) -> tuple[list[tuple[str, int]], dict[str, list[str]]]:
    """Join the most frequent pair of neighbours, again and again: byte-pair encoding by hand.

    `words` says how often each word occurs. Returns what was joined and how often it occurred, and the words in pieces.
    """
    pieces = {word: list(word) for word in words}
    joined = []
    for _ in range(joins):
        pairs = Counter[tuple[str, str]]()
        for word, times in words.items():
            for pair in pairwise(pieces[word]):
                pairs[pair] += times
        (first, second), times = pairs.most_common(1)[0]
        joined.append((first + second, times))
        for spelling in pieces.values():
            for at in reversed(range(len(spelling) - 1)):
                if spelling[at : at + 2] == [first, second]:
                    spelling[at : at + 2] = [first + second]
    return joined, pieces


def draw_words() -> Drawing:
    """Draw four words as characters, and after some joins of the most frequent pair."""
    picture = Drawing(WIDTH, 250, "Byte-pair encoding joins the most frequent pair of neighbours, again and again")
    columns = dict(zip(WORDS, (4, 116, 248, 322), strict=True))
    for word, x in columns.items():
        picture.text(x, 14, f"{word}, {WORDS[word]}×", anchor="start", style="small")
    for index, joins in enumerate((0, 1, 4, 6)):
        joined, pieces = byte_pairs(WORDS, joins)
        top = 56 + 56 * index
        title = "characters"
        if joined:
            joined_most, times = joined[-1]
            title = f"after {joins} join{'s' * (joins > 1)}, the last: {joined_most} ({times} times)"
        picture.text(4, top - 22, title, anchor="start", bold=True)
        for word, x in columns.items():
            row(picture, x, top, " ".join(pieces[word]))
    return picture


def draw_second_layer() -> Drawing:
    """Draw how often the vector of a character tells the month, before and after each block of the encoder."""
    known = json.loads(SECOND_LAYER.read_text(encoding="utf-8"))
    picture = Drawing(
        WIDTH, 206, "How often the vectors of four characters reveal the month, in %, before and after each block"
    )
    picture.text(4, 14, "how often each vector reveals the month, in %", anchor="start", style="small")
    picture.text(287, 42, "digits of the month", style="small")
    for column, character in enumerate(("dash", "first", "second", "dash")):
        picture.text(206 + 54 * column, 60, character, style="small")
    for index, (name, shares) in enumerate(known.items()):
        picture.text(168, 89 + 36 * index, name, anchor="end", style="small")
        for column, share in enumerate(shares):
            picture.box(180 + 54 * column, 74 + 36 * index, 52, 30, f"{share:.0f}", colour=GREEN, strong=share > 60)
    picture.text(4, 192, "guessing: 8", anchor="start", style="small")
    return picture


def draw_far_word() -> Drawing:
    """Draw where two heads look for the gender of a word far away."""
    found = json.loads(FAR_WORD.read_text(encoding="utf-8"))
    titles = {"written": "what it has written", "text": "the English text"}
    picture = Drawing(
        WIDTH, 340, f"Before it writes {found['writes']}, one head looks at the first article, another at the noun"
    )
    picture.text(WIDTH / 2, 14, f"before it writes “{found['writes']}”, two heads attend to", bold=True)
    for x, (side, weights) in zip((84, 294), found["heads"].items(), strict=True):
        picture.text(x, 42, titles[side], style="small")
        most = max(weight for _, weight in weights)
        for index, (token, weight) in enumerate(weights):
            y = 70 + 22 * index
            picture.text(x - 8, y, token, anchor="end", style="code")
            picture.box(x, y - 8, 1 + 80 * weight, 16, colour=ORANGE, strong=weight == most)
            if weight >= 0.1:
                picture.text(x + 88 * weight + 6, y, f"{100 * weight:.0f} %", anchor="start", style="small")
    return picture


def draw_three_attentions() -> Drawing:
    """Figure 1, and where attention is in it."""
    picture = Drawing(WIDTH, 340, "Figure 1: attention is in three of its boxes")
    picture.box(4, 126, 176, 130)
    picture.text(4, 112, "N× encoder", anchor="start", bold=True)
    picture.box(226, 58, 190, 198)
    picture.text(226, 46, "N× decoder", anchor="start", bold=True)
    picture.box(14, 186, 156, 58, "self-attention:\nsource asks source", colour=ORANGE, strong=True)
    picture.box(14, 140, 156, 26, "feed-forward", colour=BLUE)
    picture.box(238, 196, 166, 48, "masked self-att.:\ntarget asks target", colour=ORANGE, strong=True)
    picture.box(238, 122, 166, 48, "cross-attention:\ntarget asks source", colour=ORANGE, strong=True)
    picture.box(238, 72, 166, 26, "feed-forward", colour=BLUE)
    picture.arrow((92, 290), (92, 246))
    picture.arrow((92, 186), (92, 168))
    picture.arrow((92, 140), (92, 90), (204, 90), (204, 146), (236, 146))
    picture.text(106, 76, "memory: keys and values", style="small")
    picture.arrow((321, 290), (321, 246))
    picture.arrow((321, 196), (321, 172))
    picture.arrow((321, 122), (321, 100))
    picture.arrow((321, 72), (321, 34))
    picture.box(250, 4, 142, 28, "next: 5 or rossa", colour=ORANGE)
    picture.text(92, 306, "1845-01-05", style="code")
    picture.text(92, 326, "the red house", style="code")
    picture.text(321, 306, "January", style="code")
    picture.text(321, 326, "la casa", style="code")
    return picture


STORY: dict[str, Callable[[], Drawing]] = {
    "whole": draw_whole,
    "whole-halves": draw_halves,
    "whole-blocks": draw_blocks,
    "why-one-vector": draw_one_vector,
    "why-lookup": draw_lookup,
    "why-soft-lookup": draw_soft_lookup,
    "why-maps": draw_maps,
    "why-heads": draw_heads,
    "why-masks": draw_masks,
    "why-figure-1": draw_three_attentions,
    "shifted-right": draw_shifted_right,
    "words": draw_words,
    "second-layer": draw_second_layer,
    "far-word": draw_far_word,
}
