"""Every reply that was paid for, once, on disk, for many processes at a time.

A request is claimed, sent, then stored; the claim of a process that died is taken over. What was
spent under a ceiling, and what is reserved for the calls in flight, is one sum in the same file.
Each change is one short transaction in the caller's thread. Each host has a store of its own.
"""

import asyncio
import contextlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from selfeval.errors import InputError, ReplayMiss, StoreError
from selfeval.paths import DATA, HOME, make_private_folder, open_private, replacing
from selfeval.providers import dry_runs
from selfeval.providers.budget import Ceiling
from selfeval.providers.leases import BATCH, has_ended, own_name
from selfeval.providers.recordings import (
    by_key,
    export_line,
    opener,
    read_line,
    read_lines,
)
from selfeval.providers.request import MOST_AGAIN, UNANSWERED, stored_key

VERSION = 1  # of the tables, in the file's `user_version`; a new file has 0
TABLES = {
    "replies": (
        "key TEXT PRIMARY KEY",
        "request TEXT NOT NULL",
        "response TEXT NOT NULL",
        "created REAL NOT NULL",
    ),
    "attempts": ("key TEXT NOT NULL", "at REAL NOT NULL", "outcome TEXT NOT NULL", "detail TEXT"),
    "claims": (
        "key TEXT PRIMARY KEY",
        "owner TEXT NOT NULL",
        "since REAL NOT NULL",
        "amount REAL",
        "purse TEXT",
    ),
    "purses": ("name TEXT PRIMARY KEY", "spent REAL NOT NULL"),
}
PATIENCE = 60.0  # seconds that a change waits for a locked file
CHECKPOINT = 5.0  # seconds of writing after which what was written goes to the disk
# what this process has in flight: a claim of its own that is not here is left over
in_flight: set[str] = set()


class Store:
    """Replies in a file that many processes change, and recorded replies below them.

    path: the SQLite file, a relative one from the repository's root; by default `SELFEVAL_STORE` or
    `data/store/responses.sqlite`. recorded: a folder of JSON lines (.jsonl, .jsonl.xz); by default
    `data/sample`, in replay mode then `data/recorded`. replay: serve recorded replies alone and
    raise `ReplayMiss` for any other request; a folder is read instead of `data/recorded`; by
    default the environment's `SELFEVAL_REPLAY`, 1 or a folder.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        recorded: Path | None = None,
        replay: bool | Path | None = None,
    ):
        self.path = place(path)
        self._connection: sqlite3.Connection | None = None
        self._turn = threading.RLock()
        self._checkpointed = 0.0
        given = os.environ.get("SELFEVAL_REPLAY") if replay is None else replay
        self.replay = given not in (None, False, "", "0")
        self.recorded_folders = [recorded or DATA / "sample"]
        if self.replay and given not in (True, "1"):
            self.recorded_folders.append(HOME / Path(str(given)).expanduser())
            if not self.recorded_folders[-1].is_dir():
                raise InputError(
                    f"SELFEVAL_REPLAY must be 1 or a folder of recorded replies, got "
                    f"{str(given)!r}."
                )
        elif self.replay and recorded is None:
            self.recorded_folders.append(DATA / "recorded")
        self._lines: dict[
            Path, dict[str, tuple[Path, int, bytes]]
        ] = {}  # of recorded folders that were read
        self.failure: StoreError | None = None  # why nothing more is to be sent

    # the file

    @contextlib.contextmanager
    def _in_words(self, done: str) -> Iterator[None]:
        """Make one sentence of what SQLite and the file system raise."""
        try:
            yield
        except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
            code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            what = f"The response store {self.path} cannot be {done}: {error}."
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreError(f"{what} Another process holds it: end that one.") from error
            self._disconnect()
            raise StoreError(
                f"{what} Make room, check its permissions, or name another file."
            ) from error

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for reading."""
        with self._turn, self._in_words("read"):
            yield self._connect()

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside a transaction that no other process interrupts."""
        with self._turn, self._in_words("written"):
            with self._connect() as connection:  # which ends the transaction
                connection.execute("BEGIN IMMEDIATE")
                yield connection
            if time.monotonic() > self._checkpointed + CHECKPOINT:
                self._checkpointed = time.monotonic()
                # while one of our own readers is at work
                with contextlib.suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _connect(self) -> sqlite3.Connection:
        until = time.monotonic() + PATIENCE
        while self._connection is None:
            with self._in_words("opened"):
                try:
                    self._connection = self._open_to_read() if dry_runs.folder() else self._open()
                except (
                    sqlite3.OperationalError
                ) as error:  # SQLite refuses the others while one creates the file
                    if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        raise
                    time.sleep(0.05)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        make_private_folder(self.path.parent)
        # SQLite gives the files beside it the same permissions
        with contextlib.suppress(FileExistsError):
            open_private(self.path, "x").close()
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _distrust(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
            # on its own it would do so after every few hundred replies
            connection.execute("PRAGMA wal_autocheckpoint=20000")
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        """Open it without writing a byte beside it; an empty one where there is none."""
        in_use = Path(f"{self.path}-wal").exists()
        address = (
            f"file:{quote(str(self.path.absolute()))}?{'mode=ro' if in_use else 'immutable=1'}"
        )
        there = self.path.exists()
        connection = sqlite3.connect(
            address if there else ":memory:", uri=True, timeout=30, check_same_thread=False
        )
        try:
            _distrust(connection)
            if not there:
                _make_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new file; refuse one that is not ours."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise StoreError(
                f"The response store {self.path} is one of a newer version of selfeval; update "
                f"selfeval."
            )
        tables = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if tables and "replies" not in tables:
            raise StoreError(
                f"{self.path} is a database of something else; name another file in SELFEVAL_STORE."
            )
        with connection:
            if version < VERSION:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("BEGIN IMMEDIATE")
                if not connection.execute("PRAGMA user_version").fetchone()[0]:
                    # of 0.1: no process of it is at work
                    connection.execute("DROP TABLE IF EXISTS claims")
                connection.execute(f"PRAGMA user_version={VERSION}")
            _make_tables(connection)

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def close(self) -> None:
        """Close the file; a later use opens it again, and tries again to write."""
        with self._turn:
            self._disconnect()
        self.failure = None

    # reading

    def _recorded(self, key: str) -> tuple[Path, int, bytes] | None:
        """Return the line of a recorded reply.

        A folder is read when the ones before it lack a key.
        """
        for folder in self.recorded_folders:
            if folder not in self._lines:
                self._lines[folder] = by_key(folder)
            if line := self._lines[folder].get(key):
                return line
        return None

    def look_up(self, requests: Mapping[str, str]) -> dict[str, dict]:
        """Return {key: reply} of the requests that have one stored.

        {key: the request as canonical JSON}. Where one was asked again it is the first reply that
        is an answer or a refusal, else the last. Raises `ReplayMiss` in replay mode where one lacks
        a reply.
        """
        stored: dict[str, str] = {}
        if not self.replay:
            query = """SELECT replies.key, response FROM json_each(?) AS asked CROSS JOIN replies
                       ON replies.key BETWEEN asked.value AND asked.value || ' ' || ?"""
            with self.read() as connection:
                stored = dict(connection.execute(query, (json.dumps(list(requests)), MOST_AGAIN)))
        served: dict[str, dict] = {}
        for key, request in requests.items():
            for number in range(MOST_AGAIN + 1):
                reply = self._reply(stored_key(key, number), stored)
                if reply is None:
                    continue
                served[key] = reply
                if reply.get("status", "ok") not in UNANSWERED:
                    break
            if self.replay and key not in served:
                model = json.loads(request)["model"]
                rule = f"Replay mode has no recorded reply for this request to {model!r}"
                remedy = "unset SELFEVAL_REPLAY to ask the model, or record it with `make record`"
                raise ReplayMiss(f"{rule}; {remedy}.")
        return served

    def _reply(self, key: str, stored: Mapping[str, str]) -> dict | None:
        """Return a stored reply, else a recorded one."""
        text = stored.get(key)
        if text is None:
            line = self._recorded(key)
            if line is None:
                return None
            text = read_line(*line)[2]
        with self._in_words("read"):
            return json.loads(text)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield (key, request, response) of the main layer in key order."""
        with self._in_words("read"):
            query = "SELECT key, request, response FROM replies ORDER BY key"
            yield from self._connect().execute(query)

    def statistics(self) -> list[dict]:
        """Return replies, tokens and cost per provider and model."""
        names = (
            "provider",
            "model",
            "replies",
            "prompt_tokens",
            "completion_tokens",
            "cost",
            "unpriced",
        )
        # Infinity, as earlier versions could write it, is not valid JSON.
        query = """SELECT json_extract(request, '$.provider.provider'),
            json_extract(request, '$.model'), count(*),
            sum(json_extract(response, '$.usage.prompt')),
            sum(json_extract(response, '$.usage.completion')),
            sum(json_extract(response, '$.cost')), sum(json_extract(response, '$.cost') IS NULL)
            FROM (SELECT request, CASE WHEN json_valid(response) THEN response ELSE '{}' END
                AS response FROM replies)
            GROUP BY 1, 2 ORDER BY 1, 2"""
        with self.read() as connection:
            return [dict(zip(names, row, strict=True)) for row in connection.execute(query)]

    def outcomes(self) -> dict[str, int]:
        """Return how many attempts ended in each way other than a reply.

        `abandoned` were in flight at a kill.
        """
        with self.read() as connection:
            return dict(
                connection.execute("SELECT outcome, count(*) FROM attempts GROUP BY 1 ORDER BY 1")
            )

    # in flight

    async def claim(
        self, key: str, ceiling: Ceiling | None = None, amount: float = 0.0
    ) -> dict | str | None:
        """Wait until this request is ours to send (None), stored, or in a batch (which owns it).

        The claim reserves so many dollars under the ceiling, in the same transaction; raises
        `BudgetError` where that cannot fit.
        """
        if ceiling is None and self._take(key):
            return None
        while True:
            with self.change() as connection:
                response, owner = self._claim(connection, key, ceiling, amount)
            if not owner:
                return response
            if owner.startswith(BATCH):
                return owner
            await asyncio.sleep(0.1)

    def _take(self, key: str) -> bool:
        """Claim a request that has neither a reply nor a claim; return whether that is so."""
        query = """INSERT INTO claims SELECT ?1, ?2, ?3, 0, NULL
                   WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?1) ON CONFLICT DO NOTHING"""
        with self._turn, self._in_words("written"):
            row = (key, own_name(), time.time())
            is_taken = self._connect().execute(query, row).rowcount == 1
        if is_taken:
            in_flight.add(f"{self.path} {key}")
        return is_taken

    def _claim(
        self, connection, key: str, ceiling: Ceiling | None, amount: float
    ) -> tuple[dict | None, str]:
        """Return the reply, or who has the claim: "" where it is ours now.

        An owner is somebody to wait for.
        """
        stored = connection.execute("SELECT response FROM replies WHERE key = ?", (key,)).fetchone()
        if stored:
            return json.loads(stored[0]), ""

        of_this_key = connection.execute("SELECT * FROM claims WHERE key = ?", (key,)).fetchall()
        for claim in of_this_key:
            if not self._end_if_abandoned(connection, *claim):
                return None, claim[1]

        purse = None
        if ceiling:
            purse = ceiling.name
            if ceiling.holder(connection, amount):
                # those of processes that ended hold nothing any more
                query = "SELECT * FROM claims WHERE purse = ? AND owner <> ?"
                for claim in connection.execute(query, (purse, own_name())).fetchall():
                    self._end_if_abandoned(connection, *claim)
                if ceiling.holder(connection, amount):
                    return None, "who may leave room"
        row = (key, own_name(), time.time(), amount, purse)
        connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?, ?)", row)
        in_flight.add(f"{self.path} {key}")
        return None, ""

    def _end_if_abandoned(
        self, connection, key: str, owner: str, since: float, amount: float, purse: str | None
    ) -> bool:
        """End a claim that nobody is at work on; return whether it was one.

        Its process has ended, or this one has dropped it. What it reserved may have been spent.
        """
        if owner == own_name():
            abandoned = f"{self.path} {key}" not in in_flight
        else:
            abandoned = has_ended(owner, since)
        if abandoned:
            self._note(connection, key, "abandoned", f"in flight when {owner} ended")
            self._end(connection, key, owner, purse, amount)
        return abandoned

    async def put(
        self,
        key: str,
        request: str,
        response: dict,
        ceiling: Ceiling | None = None,
        owner: str | None = None,
    ) -> None:
        """Store a reply to a canonical request, book its cost and end its claim, by default ours.

        A reply that cannot be written is put into an export file, which the `StoreError` names.
        """
        text = json.dumps(response, allow_nan=False)
        try:
            with self.change() as connection:
                values = (key, request, text, time.time())
                new = connection.execute(
                    "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", values
                ).rowcount
                # where several wait for one reply, the first books it
                cost = response.get("cost") if new else None
                owner = owner or own_name()
                self._end(connection, key, owner, ceiling and ceiling.name, cost)
        except StoreError as error:
            self.failure = self._rescue(export_line(key, request, text), error)
            raise self.failure from error
        finally:
            in_flight.discard(f"{self.path} {key}")

    def release(
        self,
        key: str,
        owner: str,
        ceiling: Ceiling | None,
        cost: float | None,
        outcome="",
        detail="",
    ) -> None:
        """Give an owner's claim back without a reply, and note how that came, if it is said.

        cost: dollars of replies that are not stored. Where the file cannot be written now, the
        claim is left over.
        """
        in_flight.discard(f"{self.path} {key}")
        with contextlib.suppress(StoreError), self.change() as connection:
            if outcome:
                self._note(connection, key, outcome, detail)
            self._end(connection, key, owner, ceiling and ceiling.name, cost)

    def _end(self, connection, key: str, owner: str, purse, cost: float | None) -> None:
        """End the claim of an owner, and book what its call cost."""
        connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))
        if purse and cost:
            query = (
                "INSERT INTO purses VALUES (?, ?) ON CONFLICT DO UPDATE SET spent = spent + "
                "excluded.spent"
            )
            connection.execute(query, (purse, cost))

    def record_attempt(self, key: str, outcome: str, detail: str) -> None:
        """Note an attempt that brought no reply, unless the file cannot be written now.

        It is never served.
        """
        with contextlib.suppress(StoreError), self.change() as connection:
            self._note(connection, key, outcome, detail)

    def _note(self, connection: sqlite3.Connection, key: str, outcome: str, detail: str) -> None:
        connection.execute(
            "INSERT INTO attempts VALUES (?, ?, ?, ?)", (key, time.time(), outcome, detail[:2000])
        )

    def _rescue(self, line: str, error: StoreError) -> StoreError:
        """Put a reply that cannot be written into an export file beside the store.

        Returns the error that names it.
        """
        files = f"{self.path}.unwritten-*.jsonl"
        remedy = f"Run `selfeval store import {files}`, then the same command again."
        try:
            with open_private(Path(files.replace("*", secrets.token_hex(8))), "x") as file:
                file.write(line)
        except OSError:
            remedy = (
                "A reply that was paid for is lost, since it could not be kept in a file either."
            )
        return StoreError(f"{error} {remedy}")

    # many at once

    def import_file(self, path: Path) -> tuple[int, int]:
        """Add the replies of a JSON lines file, compressed where it ends in .xz.

        Returns how many were new and how many known. Nothing is added where a line is not whole.
        """
        lines = [read_line(*line) for line in read_lines(path)]
        rows = [(*line, time.time()) for line in lines]
        with self.change() as connection:
            query = "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)"
            new = connection.executemany(query, rows).rowcount
        return new, len(rows) - new

    def export_file(self, path: Path) -> int:
        """Write the main layer as JSON lines in key order, whole or not at all.

        Returns the number of replies. In replay mode, only replies that the recordings lack. path:
        compressed where it ends in .xz.
        """
        if path.exists():
            raise InputError(f"{path} exists; name a new file for the replies.")
        number = 0
        with replacing(path) as part:
            with opener(path)(part, "wt", encoding="utf-8") as out:
                rows = (row for row in self.rows() if not (self.replay and self._recorded(row[0])))
                for number, row in enumerate(rows, 1):  # noqa: B007
                    out.write(export_line(*row))
            part.replace(path)
        return number


def _distrust(connection: sqlite3.Connection) -> None:
    """Let a file that may be somebody else's run nothing.

    Raises where it has what a store never has.
    """
    connection.execute("PRAGMA trusted_schema=OFF")
    query = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"
    for kind, name in connection.execute(query):
        raise sqlite3.DatabaseError(f"it has the {kind} {name!r:.60}, and no store has one")


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables that are not there; raise where one of this name has other columns."""
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})")
        names = [column.split()[0] for column in columns]
        if [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] != names:
            raise sqlite3.DatabaseError(
                f"it has a table {table} with other columns than {', '.join(names)}"
            )


def place(path: Path | str | None = None) -> Path:
    """Return where a store lies, by default the one of `SELFEVAL_STORE`.

    The same file from every working directory.
    """
    given = path or os.environ.get("SELFEVAL_STORE") or DATA / "store" / "responses.sqlite"
    return HOME / Path(given).expanduser()
