"""Made-up messages of programs with their translations, and a model that has learned from them for a few seconds.

Words have several translations, so that no sentence is certain; most messages have placeholders or tags.
"""

import random
from functools import partial
from pathlib import Path

from allyouneed import Recipe, fit
from allyouneed.bundle import Bundle

VERBS = {"open": "öffnen", "delete": "löschen|entfernen", "save": "speichern|sichern", "print": "drucken",
         "send": "senden|schicken", "copy": "kopieren", "find": "finden", "read": "lesen"}  # fmt: skip
NOUNS = {"file": "Datei", "folder": "Ordner|Verzeichnis", "image": "Bild", "page": "Seite", "list": "Liste",
         "message": "Nachricht|Meldung", "window": "Fenster", "disk": "Platte|Festplatte"}  # fmt: skip
FRAMES = {
    "could not {verb} the {noun} {x}": "{noun} {x} nicht zu {verb}|{x}: {noun} nicht zu {verb}",
    "{verb} the {noun} {x} and the {other} {y}": "{noun} {x} und {other} {y} {verb}",
    "do you want to {verb} <b>{noun}</b>?": "<b>{noun}</b> {verb}?|wollen Sie <b>{noun}</b> {verb}?",
    "{x} is no {noun}, and {y} is no {other}": "{x} ist kein {noun}, {y} kein {other}",
    "the {noun} has {icu}": "{noun} mit {icu}|{icu} in {noun}",
    "please {verb} the {noun}": "bitte {noun} {verb}",
    "{x} %% of the {noun}": "{x} %% von {noun}",
}
LEARNED = ("%s", "%d", "%u", "%(name)s", "{0}", "{path}")
UNSEEN = ("%lu", "%.2f", "%-10s", "%i", "%(line)d", "{1}")
ICU = ("{n, plural, one {# byte} other {# bytes}}", "{n, plural, one {# word} other {# words}}")

RECIPE = Recipe.from_tables(
    {
        "data": {"vocabulary": "bpe", "vocab_size": 500},
        "model": {
            "d_model": 64, "d_ff": 128, "heads": 4, "encoder_layers": 1, "decoder_layers": 1, "max_length": 128,
            "dropout": 0.0,
        },
        "train": {
            "steps": 150, "batch_tokens": 1200, "optimizer": "muon", "learning_rate": 0.01, "schedule": "cosine",
            "warmup": 10, "validate_every": 150, "average_checkpoints": 1, "threads": 1, "tensorboard": False,
        },
        "decode": {"copy_untranslatable": False, "retry_repetition": False},
    }
)  # fmt: skip


def messages(count: int, *, seed: int, placeholders: tuple[str, ...] = LEARNED) -> list[tuple[str, str]]:
    """Draw pairs of a message and one of its translations."""
    rng = random.Random(seed)

    def pair() -> tuple[str, str]:
        (frame, frames), (verb, verbs) = rng.choice(list(FRAMES.items())), rng.choice(list(VERBS.items()))
        (noun, nouns), (other, others) = rng.sample(list(NOUNS.items()), 2)
        spans = {"x": rng.choice(placeholders), "y": rng.choice(placeholders), "icu": rng.choice(ICU)}
        draw = partial(_draw, rng)
        target = draw(frames).format(verb=draw(verbs), noun=draw(nouns), other=draw(others), **spans)
        return frame.format(verb=verb, noun=noun, other=other, **spans), target

    return [pair() for _ in range(count)]


def train(folder: Path) -> Bundle:
    """Train a model of such messages."""
    return fit(RECIPE, folder, train=messages(4000, seed=1), valid=messages(100, seed=2), evaluate=None)


def _draw(rng: random.Random, translations: str) -> str:
    """Draw one of the translations, the first more often than the others."""
    first, *rest = translations.split("|")
    return rng.choice([first, first, *rest]) if rest else first
