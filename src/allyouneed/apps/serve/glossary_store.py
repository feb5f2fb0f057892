"""Glossaries that clients create over HTTP, each for one account, in SQLite in memory or in a file."""

import sqlite3
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from ...errors import ConfigError, OutputError
from .refusals import Refusal
from .request_fields import too_many_terms

LanguagePair = tuple[str, str]
Entries = dict[str, str]

_MAX_GLOSSARIES = 1_000  # of one account
_SCHEMA = """
CREATE TABLE IF NOT EXISTS glossary (id TEXT PRIMARY KEY, account TEXT, name TEXT, created TEXT);
CREATE TABLE IF NOT EXISTS term (
    glossary TEXT REFERENCES glossary(id) ON DELETE CASCADE, source TEXT, target TEXT, term TEXT, translation TEXT,
    PRIMARY KEY (glossary, source, target, term)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class StoredGlossary:
    """A glossary: everything but its terms, and the number of terms for each pair of languages."""

    id: str
    name: str
    created: str
    counts: Mapping[LanguagePair, int]


class GlossaryStore:
    """The glossaries of all accounts. No account can see another's glossaries. Any thread may use the store.

    Each method may wait for seconds while another program writes to the file.
    """

    def __init__(self, path: str = "", *, max_terms: int = 1_000) -> None:
        """Open a file, or without a `path` a store in memory. Refuses a file that is not an SQLite database."""
        self._lock, self._max_terms = threading.RLock(), max_terms
        try:
            self._database = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA foreign_keys = ON")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ConfigError(f"{path} cannot be used as the file of glossaries: {error}") from error

    def create(self, account: str, name: str, dictionaries: Mapping[LanguagePair, Entries]) -> StoredGlossary:
        """Store a glossary. Refuses more than 1,000 for one account."""
        identifier, created = str(uuid.uuid4()), datetime.now(UTC).isoformat(timespec="microseconds")
        with self._transaction(writes=True):
            (count,) = self._database.execute("SELECT count(*) FROM glossary WHERE account = ?", (account,)).fetchone()
            if count >= _MAX_GLOSSARIES:
                raise Refusal(400, f"Bad request: there are {count} glossaries already; delete some")
            self._database.execute("INSERT INTO glossary VALUES (?, ?, ?, ?)", (identifier, account, name, created))
            for pair, terms in dictionaries.items():
                self._insert(identifier, pair, terms)
            return self.find(account, identifier)

    def find(self, account: str, identifier: str) -> StoredGlossary:
        """Find a glossary of an account. Refuses, with status 404, a glossary that the account does not have."""
        with self._transaction():
            row = self._database.execute(
                "SELECT name, created FROM glossary WHERE id = ? AND account = ?", (identifier, account)
            ).fetchone()
            if row is None:
                raise Refusal(404, "Glossary not found")
            rows = self._database.execute(
                "SELECT source, target, count(*) FROM term WHERE glossary = ? GROUP BY source, target", (identifier,)
            ).fetchall()
        name, created = row
        return StoredGlossary(identifier, name, created, {(source, target): count for source, target, count in rows})

    def list_all(self, account: str) -> list[StoredGlossary]:
        """List the glossaries of an account, the oldest first."""
        with self._transaction():
            rows = self._database.execute(
                "SELECT id FROM glossary WHERE account = ? ORDER BY created, id", (account,)
            ).fetchall()
            return [self.find(account, identifier) for (identifier,) in rows]

    def terms(self, account: str, identifier: str, pair: LanguagePair) -> Entries:
        """Return the terms of a glossary for a pair of languages. Refuses, with status 404, a pair without terms."""
        with self._transaction():
            if pair not in self.find(account, identifier).counts:
                raise Refusal(404, "Dictionary not found")
            rows = self._database.execute(
                "SELECT term, translation FROM term WHERE glossary = ? AND source = ? AND target = ? ORDER BY term",
                (identifier, *pair),
            ).fetchall()
        return dict(rows)

    def delete(self, account: str, identifier: str) -> None:
        """Delete a glossary."""
        with self._transaction(writes=True):
            self.find(account, identifier)
            self._database.execute("DELETE FROM glossary WHERE id = ?", (identifier,))

    def change(
        self, account: str, identifier: str, name: str | None, dictionaries: Mapping[LanguagePair, Entries]
    ) -> StoredGlossary:
        """Rename a glossary, unless the name is None, and add terms to it."""
        with self._transaction(writes=True):
            self.find(account, identifier)
            if name is not None:
                self._database.execute("UPDATE glossary SET name = ? WHERE id = ?", (name, identifier))
            for pair, terms in dictionaries.items():
                self._insert(identifier, pair, terms)
            return self.find(account, identifier)

    def replace_terms(self, account: str, identifier: str, pair: LanguagePair, terms: Entries) -> None:
        """Replace the terms of a glossary for a pair of languages."""
        with self._transaction(writes=True):
            self.find(account, identifier)
            self._delete_terms(identifier, pair)
            self._insert(identifier, pair, terms)

    def delete_terms(self, account: str, identifier: str, pair: LanguagePair) -> None:
        """Delete the terms of a glossary for a pair of languages. Refuses, with status 404, a pair without terms."""
        with self._transaction(writes=True):
            if pair not in self.find(account, identifier).counts:
                raise Refusal(404, "Dictionary not found")
            self._delete_terms(identifier, pair)

    def close(self) -> None:
        """Close the database. Glossaries in memory are lost."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[None]:
        """Apply all changes in the `with` block, or none.

        Refuses, as an `OutputError`, changes that the file cannot take.
        """
        with self._lock:
            if self._database.in_transaction:  # a block inside another
                yield
                return
            try:
                with self._database:
                    self._database.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                    yield
            except sqlite3.Error as error:
                raise OutputError(f"the file of glossaries cannot be used: {error}") from error

    def _insert(self, identifier: str, pair: LanguagePair, terms: Entries) -> None:
        self._database.executemany(
            "INSERT OR REPLACE INTO term VALUES (?, ?, ?, ?, ?)",
            [(identifier, *pair, term, translation) for term, translation in terms.items()],
        )
        (count,) = self._database.execute(
            "SELECT count(*) FROM term WHERE glossary = ? AND source = ? AND target = ?", (identifier, *pair)
        ).fetchone()
        if count > self._max_terms:
            raise Refusal(400, too_many_terms(count, self._max_terms))

    def _delete_terms(self, identifier: str, pair: LanguagePair) -> None:
        self._database.execute("DELETE FROM term WHERE glossary = ? AND source = ? AND target = ?", (identifier, *pair))
