"""SQLite files that many processes write: how they are opened, what their errors mean, who holds what in them."""

import contextlib
import os
import socket
import sqlite3
import time
import uuid
from functools import cache
from pathlib import Path

import psutil

# What a file from another hand may hold to act by itself: a trigger, a view, a virtual table.
ACTING = """SELECT type || ' ' || substr(name, 1, 50) FROM sqlite_master
            WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'"""


class Foreign(sqlite3.DatabaseError):
    """The file holds other tables than ours, or something that could act by itself."""


def connect(path: Path, schema: str, timeout: float, synchronous: str) -> sqlite3.Connection:
    """Open a file in WAL mode, make what it lacks of the tables, and return the connection in autocommit.

    timeout: seconds to wait for another process that holds the file. synchronous: SQLite's FULL (a commit is on disk)
    or OFF. Raises `Foreign`, or what SQLite does.
    """
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        _enter_wal(connection, timeout)
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA trusted_schema=OFF")
        if acting := connection.execute(ACTING).fetchone():
            raise Foreign(f"it holds {acting[0]!r}, which is not ours and could act")
        connection.executescript(schema)
        for table, columns in _columns(schema).items():
            if _names(connection, table) != columns:
                raise Foreign(f"it has a table {table} with other columns than {', '.join(columns)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _enter_wal(connection: sqlite3.Connection, timeout: float) -> None:
    until = time.monotonic() + timeout
    while True:  # of several processes that create the file, the others are refused here without waiting
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)


@cache
def _columns(schema: str) -> dict[str, list[str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript(schema)
        tables = empty.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {table: _names(empty, table) for (table,) in tables}


def _names(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


# errors ---------------------------------------------------------------------------------------------------------------


def is_busy(error: BaseException | None) -> bool:
    """Tell whether an error says that another process holds the file."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_foreign(error: BaseException | None) -> bool:
    """Tell whether an error says that the file is no database, a damaged one, or not ours."""
    return isinstance(error, Foreign) or _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def is_of_the_disk(error: BaseException | None) -> bool:
    """Tell whether an error says that the disk is full or broken, or that its permissions forbid it."""
    disk = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return isinstance(error, OSError) or _code(error) in disk


def _code(error: BaseException | None) -> int | None:
    """Return SQLite's primary code of an error, or of the one that it was made from."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if code is not None else _code(error.__cause__) if error else None


# owners ---------------------------------------------------------------------------------------------------------------


def own_name() -> str:
    """Return a new name under which this process holds something, as `is_dead` reads it."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def is_dead(owner: str) -> bool:
    """Tell whether an owner's process is known to be gone; of another host's it is not known."""
    host, _, process = owner.rpartition(":")[0].rpartition(":")
    return host == socket.gethostname() and process.isdecimal() and not psutil.pid_exists(int(process))
