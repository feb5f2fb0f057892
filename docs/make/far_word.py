"""Where the model of sentences finds the gender of a word far away: python docs/make/far_word.py

Writes docs/make/far_word.json: two heads while they write the last word of `SENTENCE`; and over 200 unseen sentences
with a clause, how much of the weight of the first head is on the first article on average, in %, and in how many, in %,
the last word changes its gender when the decoder reads the article of the other gender.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from models import AGREEMENT_MODEL, ANSWER, SENTENCE
from torch import Tensor

from allyouneed import Bundle
from allyouneed.apps.explain import recorded_attention
from allyouneed.data.agreement import ARTICLES, LOOKS, MOODS
from allyouneed.data.tasks import task_pairs
from allyouneed.machine.files import write_whole

RESULT = Path(__file__).with_name("far_word.json")
HEADS = {"written": ("decoder.layers.0.self_attention", 4), "text": ("decoder.layers.0.cross_attention", 2)}
OTHER_GENDER = {  # of articles, and of adjectives that have forms for both
    form: forms[1 - gender]
    for pairs in (ARTICLES, *(adjective.italian for adjective in MOODS + LOOKS))
    for forms in pairs
    for gender, form in enumerate(forms)
    if forms[0] != forms[1]
}


@torch.inference_mode()
def look(bundle: Bundle, source: str, target: str) -> tuple[str, dict[str, Tensor]]:
    """Let the decoder read all of a target but its last word; return what it writes, and the weights of `HEADS`."""
    tokenizer, model = bundle.source_tokenizer, bundle.model.eval()
    read = tokenizer.encode(target)[:-2]
    with recorded_attention(model) as seen:
        logits = model(torch.tensor([tokenizer.encode(source)]), torch.tensor([read]))
    weights = {side: seen[name][0, head - 1, -1] for side, (name, head) in HEADS.items()}
    return tokenizer.decode([int(logits[0, -1].argmax())]), weights


def far_sentences() -> Iterator[tuple[str, str]]:
    """Yield 200 unseen sentences with a clause, whose last word has a form for each gender."""
    pairs = task_pairs("agreement", "test", count=600)
    far = [pair for pair in pairs if " che " in pair[1] and pair[1].split()[-1] in OTHER_GENDER]
    yield from far[:200]


def measure(bundle: Bundle) -> dict[str, Any]:
    """Measure everything."""
    word, weights = look(bundle, SENTENCE, ANSWER)
    on_article = changed = 0.0
    sentences = list(far_sentences())
    for source, target in sentences:
        article, rest = target.split(maxsplit=1)
        right, seen = look(bundle, source, target)
        wrong, _ = look(bundle, source, f"{OTHER_GENDER[article]} {rest}")
        on_article += float(seen["written"][1])  # after <sos>
        changed += wrong == OTHER_GENDER[right]
    tokens = {"written": ["<sos>", *ANSWER.split()[:-1]], "text": ["<sos>", *SENTENCE.split(), "<eos>"]}
    return {
        "writes": word,
        "heads": {
            side: [[token, round(weight, 4)] for token, weight in zip(tokens[side], own.tolist(), strict=True)]
            for side, own in weights.items()
        },
        "sentences": len(sentences),
        "on the article": round(100 * on_article / len(sentences), 1),
        "changed": round(100 * changed / len(sentences), 1),
    }


if __name__ == "__main__":
    write_whole(RESULT, json.dumps(measure(Bundle.load(AGREEMENT_MODEL)), ensure_ascii=False, indent=1) + "\n")
