"""From the files that settings name to encoded pairs on disk, once.

prepared.json             what it was made of, and the report; written last
tokenizer.json            the vocabulary, and tokenizer.target.json if the target has its own
train.source.ids, …       the pairs to train on, as ids (data/store.py)
train.texts.source.ids, … all that was read, as texts, if pairs are spelled anew in every epoch
train.rows              which of those each pair to train on is
valid.jsonl, test.jsonl   the pairs held out, as texts
"""

import json
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..config import CleanConfig, DataConfig
from ..corpus.clean import DataReport, as_example
from ..corpus.pair import Pair
from ..corpus.readers import local_paths
from ..errors import AllYouNeedError, ConfigError, DataError, InputError, OutputError
from ..files import locked, parse_json, read_json_lines, refusing_errors, to_json, write_whole
from ..text.spans import CopyStatistics
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary, train_vocabulary
from .filter import select_pairs
from .read import CHUNK, ProgressCallback, ReadPairs, chunks, read_part
from .store import EncodedPairs, encode_pairs, open_sides, open_writers

FORMAT = 2
# The names of all that is written here.
PREPARED = (
    "prepared.json", "tokenizer.json", "tokenizer.target.json", "train.rows", "valid.jsonl", "test.jsonl",
    "train.*.ids", "train.*.starts", "valid.texts.*", "test.texts.*", ".*.partial",
)  # fmt: skip
LEARN_FROM = 1_000_000  # pairs, evenly spaced, that pieces are learned from


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that training needs of its data. `valid` is None if nothing is held out.

    `made_of` names every source and setting that the pairs follow from, with a fingerprint of each.
    """

    train: EncodedPairs
    valid: EncodedPairs | None
    valid_pairs: list[Pair]
    test_pairs: list[Pair]
    vocabulary: Vocabulary
    report: DataReport
    copy_statistics: CopyStatistics
    provenance: dict[str, str]

    @property
    def fingerprint(self) -> str:
        """The same for the same pairs only."""
        return _short(json.dumps(self.provenance))


def prepare(
    data: DataConfig,
    clean: CleanConfig,
    folder: Path,
    *,
    max_length: int,
    vocabulary: Vocabulary | None = None,
    resume: bool = False,
    progress: ProgressCallback = lambda what, done, total: None,
) -> Prepared:
    """Read, clean, split and encode what `data` names, or open what an earlier call left of the same in `folder`.

    A pair of more than `max_length` tokens on a side is dropped. `vocabulary`, if given, is used instead of
    one learned here. With `data.cache_dir`, that place is used instead of `folder`. The folder appears whole or
    not at all. `progress` is told how far it is. With `resume`, refuses to replace pairs that were made of
    something else, and says what.
    """
    if not any(corpus.train for corpus in data.corpora()):
        raise ConfigError("data.train is missing; name a file of pairs, or two aligned files, [source, target]")
    made_of = _provenance(data, clean, max_length, vocabulary)
    if data.cache_dir:
        folder = Path(data.cache_dir, _short(json.dumps(made_of)))
    stored = _stored(folder)
    if resume and stored and stored["made_of"] != made_of:
        raise DataError(f"{folder} was made of something else: {_difference(stored['made_of'], made_of)}")

    def build_unless_there() -> None:
        stored = _stored(folder)
        if not stored or stored["made_of"] != made_of:
            with _replaced_whole(folder) as place:
                _build(
                    data, clean, place, max_length=max_length, vocabulary=vocabulary, made_of=made_of, progress=progress
                )

    if data.cache_dir and not stored:
        progress("waiting for data.cache_dir", 0, None)  # where another run may prepare the same pairs
        with locked(folder, what=str(folder), wait=True):
            build_unless_there()
    else:
        build_unless_there()
    try:
        return _open(folder, data, max_length)
    except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, AllYouNeedError):
            raise
        raise _damaged(folder, str(error)) from error


def _build(
    data: DataConfig,
    clean: CleanConfig,
    folder: Path,
    *,
    max_length: int,
    vocabulary: Vocabulary | None,
    made_of: dict[str, str],
    progress: ProgressCallback,
) -> None:
    report = DataReport()
    everything = read_part("train", data, clean, folder, report, progress=progress)
    valid, test = (read_part(part, data, clean, folder, DataReport()) for part in ("valid", "test"))
    chosen = select_pairs(data, clean, everything, valid, test, report)
    if vocabulary is None:
        progress("learning a vocabulary", 0, None)
        vocabulary = _train_vocabulary(data, everything, chosen.train)
    report.vocabulary = (
        [len(vocabulary.source)] if vocabulary.joint else [len(vocabulary.source), len(vocabulary.target)]
    )
    dtype = "uint16" if max(report.vocabulary) <= 2**16 else "int32"
    weights = _encode(everything, chosen.train, vocabulary, folder, dtype, max_length, report, progress)
    if not report.train:
        raise DataError(f"data.train has no pair to use: {report.text()}")
    for name, pairs in (("valid", chosen.valid), ("test", chosen.test)):
        write_whole(folder / f"{name}.jsonl", "".join(f"{json.dumps(pair)}\n" for pair in pairs))
    vocabulary.save(folder)
    for file in folder.glob("*.texts.*"):
        if not (data.subword_sampling and file.name.startswith("train.")):
            file.unlink()
    about = {
        "made_of": made_of,
        "dtype": dtype,
        "weights": weights,
        "copies": asdict(CopyStatistics.from_pairs(everything.pairs(chosen.train))),
        "report": report.table(),
        "checksums": {path.name: _checksum(path) for path in sorted(folder.iterdir())},
    }
    write_whole(folder / "prepared.json", to_json(about, indent=2) + "\n")


def _train_vocabulary(data: DataConfig, everything: ReadPairs, chosen: NDArray[np.int32]) -> Vocabulary:
    pairs = len(chosen)
    if data.vocabulary in ("bpe", "unigram", "words"):  # the others need every letter
        chosen = chosen[:: max(1, -(-pairs // LEARN_FROM))]
    return train_vocabulary(
        data,
        lambda: (pair.source for pair in everything.pairs(chosen)),
        lambda: (pair.target for pair in everything.pairs(chosen)),
        pairs=pairs,
    )


def _encode(
    everything: ReadPairs,
    chosen: NDArray[np.int32],
    vocabulary: Vocabulary,
    folder: Path,
    dtype: str,
    max_length: int,
    report: DataReport,
    progress: ProgressCallback,
) -> list[tuple[int, float]]:
    """Write the chosen pairs as ids; returns where each corpus ends among them, and its weight."""
    weights: list[tuple[int, float]] = []
    begin = 0
    used = array("i")
    with open_writers(folder, "train", dtype) as (source, target):
        for (end, weight, _), from_here in zip(everything.ends, report.sources, strict=True):
            before = report.train
            first, last = np.searchsorted(chosen, [begin, end])
            for places in chunks(chosen[first:last], CHUNK):
                pairs = list(everything.pairs(places))
                sources = _ids(vocabulary.source, [pair.source for pair in pairs])
                targets = _ids(vocabulary.target, [pair.target for pair in pairs])
                kept = []
                for i, pair in enumerate(pairs):
                    if max(len(sources[i]), len(targets[i])) <= max_length:
                        kept.append(i)
                    else:
                        report.dropped["tokens"].add(as_example(pair))
                source.add([sources[i] for i in kept])
                target.add([targets[i] for i in kept])
                used.extend(int(places[i]) for i in kept)
                report.train += len(kept)
                progress("encoding", len(used), len(chosen))
            from_here.train = report.train - before
            weights.append((report.train, weight))
            begin = end
    write_whole(folder / "train.rows", used.tobytes())
    return weights


def _ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    try:
        return tokenizer.encode_all(texts)
    except InputError as error:
        raise DataError(f"data.train: {error}") from error


def _resampler(
    folder: Path, vocabulary: Vocabulary, data: DataConfig, max_length: int
) -> Callable[[Sequence[int], int], tuple[list[list[int]], list[list[int]]]]:
    """What spells pairs by chance; the same in the same epoch. A spelling too long for the model is not used."""
    texts = open_sides(folder, "train.texts", "uint8")
    places = np.fromfile(folder / "train.rows", np.int32)
    plain = (vocabulary.source, vocabulary.target)
    sampled = [tokenizer.with_sampling(strength=data.subword_sampling, seed=data.seed) for tokenizer in plain]

    def spell(side: int, chosen: Sequence[int], epoch: int) -> list[list[int]]:
        rows = []
        for i in chosen:
            text = texts[side].text(int(places[i]))
            ids = sampled[side](text, (epoch << 32) + 2 * int(places[i]) + side)
            rows.append(ids if len(ids) <= max_length else plain[side].encode(text))
        return rows

    return lambda chosen, epoch: (spell(0, chosen, epoch), spell(1, chosen, epoch))


def _open(folder: Path, data: DataConfig, max_length: int) -> Prepared:
    about = _stored(folder)
    assert about is not None
    _refuse_damaged(folder, about.get("checksums", {}))
    report = DataReport.from_table(about["report"])
    vocabulary = Vocabulary.load(folder, joint=len(report.vocabulary) == 1)
    valid, test = (_pairs(folder / f"{part}.jsonl") for part in ("valid", "test"))
    train = EncodedPairs(
        *open_sides(folder, "train", about["dtype"]),
        dropped=report.excluded(),
        weights=tuple((end, weight) for end, weight in about["weights"]),
        resample=_resampler(folder, vocabulary, data, max_length) if data.subword_sampling else None,
    )
    encoded = encode_pairs(valid, vocabulary.source, vocabulary.target, max_length=max_length)
    if valid and not len(encoded):
        raise DataError(f"data.valid has no pair of at most model.max_length={max_length} tokens: {len(valid)} read")
    copies = CopyStatistics.from_table(about["copies"])
    return Prepared(train, encoded if valid else None, valid, test, vocabulary, report, copies, about["made_of"])


def read_test_pairs(folder: Path) -> list[Pair]:
    """The pairs held out for a test that `prepare` left in a folder; none if it left no such file."""
    path = folder / "test.jsonl"
    return _pairs(path) if path.exists() else []


def _pairs(path: Path) -> list[Pair]:
    return [Pair(*pair) for pair in read_json_lines(path)]


def _stored(folder: Path) -> dict[str, Any] | None:
    path = folder / "prepared.json"
    if not path.exists():
        return None
    try:
        about: dict[str, Any] = parse_json(path.read_bytes())
        if not isinstance(about["made_of"], dict):
            raise TypeError("made_of is no table")
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise _damaged(folder, f"{path.name}: {error}") from error
    return about


def _damaged(folder: Path, why: str) -> DataError:
    return DataError(f"{folder} is damaged ({why}); remove that folder, and its pairs are prepared anew")


def _refuse_damaged(folder: Path, sums: dict[str, int]) -> None:
    for name, then in sums.items():
        if _checksum(folder / name) != then:
            raise _damaged(folder, f"{name} is not what was written")


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while some := file.read(2**20):
            found = crc32(some, found)
    return found


def _refuse_unrelated(folder: Path) -> None:
    for path in folder.glob("*"):
        if not path.is_file() or not any(path.match(pattern) for pattern in PREPARED):
            raise OutputError(
                f"{folder} holds {path.name}, which is no prepared pairs and would be lost; name another place with "
                "--output (or data.cache_dir)"
            )


@contextmanager
def _replaced_whole(folder: Path) -> Iterator[Path]:
    """An empty folder that takes the name `folder`, and the place of what stood there, when the block ends well."""
    alone = not folder.parent.exists()
    with refusing_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    _refuse_unrelated(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        with refusing_errors(folder):
            yield partial
            shutil.rmtree(folder, ignore_errors=True)
            partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if alone and not folder.exists():
            folder.parent.rmdir()


def _provenance(data: DataConfig, clean: CleanConfig, max_length: int, vocabulary: Vocabulary | None) -> dict[str, str]:
    """Every source by its content and every setting by its value. An address on a hub stands for its content."""
    made_of = {"format": str(FORMAT), "model.max_length": str(max_length)}
    for number, corpus in enumerate(data.corpora()):
        name = f"data.corpus[{number}]" if number else "data"
        for part in ("train", "valid", "test"):
            where = getattr(corpus, part)
            files = local_paths(where, folder=data.data_dir)
            made_of[f"{name}.{part}"] = " + ".join(map(_content, files)) if files else str(where)
        made_of |= {f"{name}.columns": str(corpus.columns), f"{name}.weight": str(corpus.weight)}
    if data.bpe_codes:
        made_of["data.bpe_codes"] = _content(Path(data.data_dir, data.bpe_codes))
    plain = {"train", "valid", "test", "columns", "corpus", "data_dir", "cache_dir", "bpe_codes"}
    made_of |= {f"data.{key}": str(value) for key, value in asdict(data).items() if key not in plain}
    made_of |= {f"clean.{key}": str(value) for key, value in asdict(clean).items()}
    if vocabulary:
        made_of["vocabulary"] = vocabulary.fingerprint()
    return made_of


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()[:16]
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except OSError as error:
        raise DataError(f"{path} could not be read: {error.strerror or error}") from error


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _difference(then: dict[str, str], now: dict[str, str]) -> str:
    keys = sorted(key for key in then.keys() | now.keys() if then.get(key) != now.get(key))
    return ", ".join(f"{key} was {then.get(key)} and is {now.get(key)}" for key in keys)
