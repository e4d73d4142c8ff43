"""One SQLite file that many processes change in short transactions, and which process holds each claim.

WAL, `synchronous=NORMAL`, a checkpoint at least every five seconds while it is written. Not for network file systems.
"""

import asyncio
import contextlib
import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import psutil

from selfeval.asking import dryrun
from selfeval.errors import StoreError

VERSION = 1  # of the tables, in the file's `user_version`; a new file has 0
TABLES = {
    "replies": ("key TEXT PRIMARY KEY", "request TEXT NOT NULL", "response TEXT NOT NULL", "created REAL NOT NULL"),
    "attempts": ("key TEXT NOT NULL", "at REAL NOT NULL", "outcome TEXT NOT NULL", "detail TEXT"),
    "claims": ("key TEXT PRIMARY KEY", "owner TEXT NOT NULL", "since REAL NOT NULL", "amount REAL", "purse TEXT"),
    "rates": ("name TEXT PRIMARY KEY", "requests REAL NOT NULL", "tokens REAL NOT NULL"),
    "purses": ("name TEXT PRIMARY KEY", "spent REAL NOT NULL"),
}
# What a file from another hand may hold to act by itself: a trigger, a view, a virtual table.
ACTING = """SELECT type || ' ' || substr(name, 1, 50) FROM sqlite_master
            WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'"""
OF_THE_DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
BUSY = 0.05  # seconds that the event loop may stand still for a locked file
OPENING = 0.5  # seconds that it may stand still for one that is just being made
PATIENCE = 60.0  # seconds that a change waits for a locked file
CHECKPOINT = 5.0  # seconds of writing after which what was written goes to the disk
ABROAD = 600.0  # seconds after which a claim from another host, of which nothing is known, is taken over


class Locked(StoreError):
    """Another process holds the file; it may be free again in a moment."""


# who holds a claim ----------------------------------------------------------------------------------------------------


def own_name() -> str:
    """Return this process's name as the owner of claims: host, process and its start in seconds since the boot."""
    return _own(os.getpid())


@lru_cache(1)
def _own(pid: int) -> str:
    return _name(psutil.Process(pid))


def _name(process: psutil.Process) -> str:
    started = process.create_time() - psutil.boot_time()  # both move when the clock is set
    return f"{socket.gethostname()}:{process.pid}:{started:.2f}"


def has_ended(owner: str, since: float) -> bool:
    """Tell whether the process that owns a claim is gone, so that nobody will give it back."""
    try:
        host, pid, _ = owner.rsplit(":", 2)
        if host != socket.gethostname():
            return time.time() > since + ABROAD
        process = psutil.Process(int(pid))
        return process.status() == psutil.STATUS_ZOMBIE or _name(process) != owner
    except (psutil.Error, ValueError):
        return True


# the file -------------------------------------------------------------------------------------------------------------


class Ledger:
    """One SQLite file that many processes change in short transactions."""

    remedy = (  # where it is damaged or not ours
        "Move it away or name another file in SELFEVAL_STORE; `selfeval store import` and `merge` add what copies hold."
    )

    def __init__(self, path: Path):
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._turn = threading.RLock()
        self._checkpointed = self._waiting = 0.0

    @contextlib.contextmanager
    def _in_words(self, done: str) -> Iterator[None]:
        """Make one sentence of what SQLite and the file system raise."""
        try:
            yield
        except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
            code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            what = f"The response store {self.path} cannot be {done}: {error}."
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Locked(f"{what} Another process holds it: end that one.") from error
            self._disconnect()
            room = code in OF_THE_DISK or isinstance(error, OSError)
            remedy = "Make room or check its permissions, and that it is no folder." if room else self.remedy
            raise StoreError(f"{what} {remedy}") from error

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for reading."""
        with self._turn, self._in_words("read"):
            yield self._connect()

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside a transaction that no other process interrupts."""
        with self._turn, self._in_words("written"):
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if time.monotonic() > self._checkpointed + CHECKPOINT:
                self._checkpointed = time.monotonic()
                with contextlib.suppress(sqlite3.OperationalError):  # while one of our own readers is at work
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _once(self, step: Callable) -> tuple:
        """Return (what a step returns from one transaction,), or () while it is worth waiting for a locked file."""
        try:
            with self.change() as connection:
                done = (step(connection),)
        except Locked:
            self._waiting = self._waiting or time.monotonic()
            if time.monotonic() > self._waiting + PATIENCE:
                raise
            return ()
        self._waiting = 0.0
        return done

    async def write(self, step: Callable):
        """Return what a step on the connection returns; while the file is locked, do not hold up the event loop."""
        while not (done := self._once(step)):  # noqa: ASYNC110  another process sets no event
            await asyncio.sleep(BUSY)
        return done[0]

    def write_now(self, step: Callable):
        """Return what a step on the connection returns, outside of an event loop."""
        while not (done := self._once(step)):
            time.sleep(BUSY)
        return done[0]

    def _connect(self) -> sqlite3.Connection:
        until = time.monotonic() + OPENING
        while self._connection is None:
            try:
                with self._in_words("opened"):
                    self._connection = self._open_to_read() if dryrun.folder() else self._open()
            except Locked:  # of several processes that create the file, SQLite refuses the others without waiting
                if time.monotonic() > until:
                    raise
                time.sleep(BUSY)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA trusted_schema=OFF")
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        """Open it without writing a byte beside it; an empty one where there is none."""
        in_use = Path(f"{self.path}-wal").exists()
        address = f"file:{quote(str(self.path.absolute()))}?{'mode=ro' if in_use else 'immutable=1'}"
        there = self.path.exists()
        connection = sqlite3.connect(address if there else ":memory:", uri=True, timeout=30, check_same_thread=False)
        connection.execute("PRAGMA trusted_schema=OFF")
        if not there:
            _make_tables(connection)
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new file; refuse one that is not ours, before anything of it is changed."""
        if acting := connection.execute(ACTING).fetchone():
            raise sqlite3.DatabaseError(f"it holds {acting[0]!r}, which is not ours and could act")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise StoreError(f"The response store {self.path} is one of a newer version of selfeval; update selfeval.")
        if version == VERSION:
            _make_tables(connection)
            return
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        if _columns(connection, "claims") == ["key", "owner", "expires"]:  # of 0.1; no process of it is at work
            connection.execute("DROP TABLE claims")
        _make_tables(connection)
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        with self._turn:
            self._disconnect()
            self._waiting = 0.0


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables that are not there; raise where one of this name has other columns."""
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})")
        names = [column.split()[0] for column in columns]
        if _columns(connection, table) != names:
            raise sqlite3.DatabaseError(f"it has a table {table} with other columns than {', '.join(names)}")


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
