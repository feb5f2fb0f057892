"""Edits between two texts."""

from collections.abc import Sequence


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """How many items to insert, delete or replace to make one sequence of the other (Levenshtein, 1966).

    The items of a string are its characters; of a list of words, the words.

    One column of the table of distances is two whole numbers, whose bits say where the distance rises or falls by one
    from row to row (Myers, 1999; Hyyrö, 2003). So a column takes a few operations, however long the sequence is.
    """
    if not first:
        return len(second)
    occurrences: dict[str, int] = {}
    for row, item in enumerate(first):
        occurrences[item] = occurrences.get(item, 0) | 1 << row
    every, last = (1 << len(first)) - 1, 1 << len(first) - 1
    rises, falls, distance = every, 0, len(first)
    for item in second:
        equal = occurrences.get(item, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls  # where going down the diagonal costs nothing
        right = falls | ~(diagonal | rises) & every  # where the distance rises from this column to the next
        left = rises & diagonal
        distance += bool(right & last) - bool(left & last)
        right, left = (right << 1 | 1) & every, left << 1 & every
        rises, falls = left | ~(diagonal | right) & every, right & diagonal
    return distance
