from dataclasses import replace

from allyouneed import Tokenizer, Transformer, Translator
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from conftest import SMALL


def test_segments_of_several_calls_can_share_a_batch() -> None:
    tokenizer = Tokenizer.characters("abcdefghij ")
    model = Transformer(replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)).eval()
    translator = Translator(Bundle(model, tokenizer, tokenizer, DecodeConfig(beam=2)))
    ours, yours = ["abc", "", "j" * 9 + " " + "a" * 9], ["dig", "abc"]
    first, second = translator.split(ours), translator.split(yours)
    assert len(first.segments) == 3  # none for the empty text, two for the long one
    translations = translator.translate_segments([*first.segments, *second.segments])
    for texts, split, some in ((ours, first, translations[:3]), (yours, second, translations[3:])):
        assert [one.text for one in translator.join(split, some)] == translator.translate(texts)
