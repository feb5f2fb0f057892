"""Edits between two texts."""


def edit_distance(first: str, second: str) -> int:
    """How many characters to insert, delete or replace to make one text of the other (Levenshtein, 1966).

    One column of the table of distances is two whole numbers, whose bits say where the distance rises or falls by one
    from row to row (Myers, 1999; Hyyrö, 2003). So a column takes a few operations, however long the text is.
    """
    if not first:
        return len(second)
    occurrences: dict[str, int] = {}
    for row, character in enumerate(first):
        occurrences[character] = occurrences.get(character, 0) | 1 << row
    every, last = (1 << len(first)) - 1, 1 << len(first) - 1
    rises, falls, distance = every, 0, len(first)
    for character in second:
        equal = occurrences.get(character, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls  # where going down the diagonal costs nothing
        right = falls | ~(diagonal | rises) & every  # where the distance rises from this column to the next
        left = rises & diagonal
        distance += bool(right & last) - bool(left & last)
        right, left = (right << 1 | 1) & every, left << 1 & every
        rises, falls = left | ~(diagonal | right) & every, right & diagonal
    return distance
