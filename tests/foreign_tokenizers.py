"""Tokenizers as other programs make them with the tokenizers library, learned from a few lines."""

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LINES = ["A dog runs.", "Two dogs ran, and a cat sleeps.", "The dog and the cats are outside."] * 5
UNUSUAL = ["", "Ünknown ☃ dogs", "  a  dog ", "dogs < cats > dogs"]


def foreign_tokenizers() -> dict[str, Tokenizer]:
    """Make one of each kind: special tokens of other names, in other places, or missing; padding; other frames."""
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    byte_level.post_processor = processors.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    byte_level.train_from_iterator(
        LINES,
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=letters, show_progress=False
        ),
    )
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    words.train_from_iterator(LINES, trainers.WordLevelTrainer(special_tokens=special, show_progress=False))
    words.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    words.enable_padding()
    words.enable_truncation(3)
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer, unigram.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    unigram.train_from_iterator(
        LINES,
        trainers.UnigramTrainer(
            vocab_size=60, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    merges = Tokenizer(models.BPE(unk_token="<unk>"))
    merges.pre_tokenizer, merges.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    merges.train_from_iterator(
        LINES, trainers.BpeTrainer(vocab_size=60, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    )
    return {"byte-level BPE": byte_level, "words": words, "unigram": unigram, "BPE": merges}
