"""The models of a server: bundles by language pair, each loaded when it is first used."""

import asyncio
import logging
import math
import signal
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...bundle import model_files
from ...bundle_parts import WEIGHTS_FILE, read_config
from ...config.language_tags import language_name, model_name, parse_pair, with_name
from ...errors import BundleError, ConfigError, LanguageError
from ...machine.files import named_folders
from ...translator import Translator
from .languages import Language, ModelKey
from .options import ServeConfig

MEBIBYTE = 2**20
_LISTED = 20  # pairs in a refusal


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model is: the folder of its bundle, or the folders of an ensemble with commas; and its languages."""

    key: ModelKey
    folder: Path

    @classmethod
    def parse(cls, argument: str | Path) -> "ModelSource":
        """Read `BUNDLE` or `BUNDLE=en-it`, where BUNDLE may be an ensemble `a,b`.

        If a model has no languages, such as a model of dates, the name of its folder is used for both.
        """
        folder, equals, pair = str(argument).rpartition("=")
        if not equals or Path(argument).is_dir():
            folder, pair = str(argument), ""
        languages = read_config(named_folders(folder)[0]).languages  # refuses other folders
        source, target = parse_pair(pair) if pair else languages
        if not (source and target):
            source = target = model_name(Path(folder).name)
        return cls(ModelKey(source, target), Path(folder))

    def require_settings(self, decode: Mapping[str, Any]) -> None:
        """Refuse search settings that this model cannot have, before it is loaded."""
        read_config(named_folders(self.folder)[0]).decode.with_changes(decode)

    def renamed(self) -> "ModelSource":
        """Return the same model with the name of its folder added to its source language: "en-x-small"."""
        return replace(self, key=ModelKey(with_name(self.key.source, self.folder.name), self.key.target))


class LoadedModel:
    """A bundle in memory. Requests that use it keep it, whatever the store does in the meantime."""

    def __init__(self, source: ModelSource, config: ServeConfig, decode: Mapping[str, Any]) -> None:
        self.source, self.stamp = source, _stamp(source.folder)
        folders = named_folders(source.folder)
        self.base = Translator.load(*folders, device=config.device, precision=config.precision, **decode)
        files = [path for folder in folders for path in model_files(Path(folder))]
        self.bytes = sum(path.stat().st_size for path in files if path.name == WEIGHTS_FILE)

    def is_current(self) -> bool:
        """Return True if the files on disk are still those that were read."""
        return self.stamp == _stamp(self.source.folder)


class ModelStore:
    """The models by language pair. Any thread may call it.

    If two models serve the same pair, the name of the second model's folder is appended to its source language:
    "en-x-small".
    """

    def __init__(
        self, sources: Iterable[ModelSource], config: ServeConfig, decode: Mapping[str, Any] | None = None
    ) -> None:
        self._sources: dict[ModelKey, ModelSource] = {}
        for source in sources:
            other = self._sources.get(source.key)
            named = source.renamed() if other else source
            if other and named.key in self._sources:
                raise ConfigError(f"{other.folder} and {source.folder} both translate {source.key}; serve one of them")
            self._sources[named.key] = named
        self._config, self._decode = config, dict(decode or {})
        self._loaded: dict[ModelKey, LoadedModel] = {}  # in order of use, the latest last
        self._lock = threading.Lock()  # for the dict; never held while a model is being read
        self._loading = {key: threading.Lock() for key in self._sources}

    def put(self, source: ModelSource) -> bool:
        """Serve a model from now on, in place of an earlier model for its pair. Returns True if there was none."""
        with self._lock:
            self._sources[source.key] = source
            loading, present = self._loading.setdefault(source.key, threading.Lock()), self._loaded.get(source.key)
        if present and present.source == source and present.is_current():
            return False
        with loading:
            self._read(source.key)
        return True

    def pairs(self) -> list[ModelKey]:
        """List all pairs in the order of the bundles."""
        return list(self._sources)

    def languages(self) -> list[Language]:
        """List all source languages, with their English names and their targets."""
        targets: dict[str, list[str]] = {}
        for source, target in self._sources:
            targets.setdefault(source, []).append(target)
        return [Language(code, language_name(code), tuple(others)) for code, others in targets.items()]

    def codes(self) -> list[str]:
        """List all languages that some model reads or writes, the sources first."""
        return list(dict.fromkeys([source for source, _ in self._sources] + [target for _, target in self._sources]))

    def pair(self, source: str, target: str) -> ModelKey:
        """Return the key of a pair, ignoring case. Refuses languages that no model here translates."""
        known = {code.lower(): code for key in self._sources for code in key}
        for code in (source, target):
            if code.lower() not in known:
                raise LanguageError(f"{code} is not supported; {self.listed()}")
        key = ModelKey(known[source.lower()], known[target.lower()])
        if key not in self._sources:
            raise LanguageError(
                f"{language_name(key.target)} ({key.target}) is not available as a target language from "
                f"{language_name(key.source)} ({key.source}); {self.listed()}"
            )
        return key

    def is_same(self, source: str, target: str) -> bool:
        """Return True if two languages are the same, so that a text needs no translation."""
        return source == target and ModelKey(source, target) not in self._sources

    def listed(self) -> str:
        """List in words what can be translated, for a refusal."""
        pairs = [str(key) for key in self._sources]
        more = f" and {len(pairs) - _LISTED} more (GET /languages)" if len(pairs) > _LISTED else ""
        return f"there is {', '.join(pairs[:_LISTED]) or 'no model yet'}{more}"

    def loaded(self, key: ModelKey) -> LoadedModel | None:
        """Return the model of a pair if it is in memory, and record that it was used now."""
        with self._lock:
            if model := self._loaded.pop(key, None):
                self._loaded[key] = model
            return model

    def load(self, key: ModelKey) -> LoadedModel:
        """Return the model of a pair, reading it if necessary, which may take seconds: call this in a thread."""
        with self._loading[key]:
            return self.loaded(key) or self._read(key)

    def missing(self) -> list[ModelKey]:
        """List the pairs whose model is neither in memory nor on the disk any more."""
        with self._lock:
            unloaded = [source for key, source in self._sources.items() if key not in self._loaded]
        return [source.key for source in unloaded if not all(map(model_files, named_folders(source.folder)))]

    def translator(self, key: ModelKey) -> Translator:
        """Return the translator of a pair, loading it first if necessary."""
        return self.load(key).base

    def reload_changed(self) -> dict[ModelKey, str]:
        """Read changed models again. Returns what happened, by pair. An incomplete bundle is ignored.

        Requests that already use an older model finish with it.
        """
        with self._lock:
            models = dict(self._loaded)
        outcome: dict[ModelKey, str] = {}
        for key, model in models.items():
            try:
                if not model.is_current():
                    with self._loading[key]:
                        self._read(key)
                    outcome[key] = "reloaded"
            except Exception as error:  # the model in memory stays in use, whatever is wrong with the new files
                outcome[key] = f"not reloaded: {error}"
        return outcome

    def memory(self) -> dict[ModelKey, int]:
        """Count the bytes of the weights of each model in memory, in float32."""
        with self._lock:
            return {key: model.bytes for key, model in self._loaded.items()}

    def _read(self, key: ModelKey) -> LoadedModel:
        try:
            model = LoadedModel(self._sources[key], self._config, self._decode)
        except OSError as error:
            raise BundleError(f"the model of {key} cannot be read: {error}") from error
        with self._lock:
            self._loaded.pop(key, None)
            self._loaded[key] = model
            limit = self._config.max_loaded_memory * MEBIBYTE or math.inf
            # Forget the models that were used longest ago, until the rest is within the limit. The latest model always
            # stays.
            while len(self._loaded) > 1 and sum(one.bytes for one in self._loaded.values()) > limit:
                del self._loaded[next(iter(self._loaded))]
        return model


def _stamp(folder: Path) -> list[tuple[str, int, int]]:
    files = [file for bundle in named_folders(folder) for file in model_files(bundle)]
    stats = ((file.name, file.stat()) for file in files)
    return [(name, stat.st_mtime_ns, stat.st_ino) for name, stat in stats]


_LOG = logging.getLogger("allyouneed.apps.serve")


async def reload_models(models: ModelStore, *, every: float) -> None:
    """Reload changed bundles until the task is cancelled. `every` is in seconds; 0 means only at SIGHUP."""
    signalled = asyncio.Event()
    # Only a program's main thread receives signals; a test's server runs in another thread.
    if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, signalled.set)
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(every or None):
                await signalled.wait()
        signalled.clear()
        for key, outcome in (await asyncio.to_thread(models.reload_changed)).items():
            level = logging.INFO if outcome == "reloaded" else logging.WARNING
            _LOG.log(level, "%s: %s", key, outcome)


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work`, which never ends by itself, during the `with` block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
