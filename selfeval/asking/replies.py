"""The file of the response store: its tables, and the one thread of a process that writes them.

The thread groups whatever waits into one commit, so that durability costs a share of a disk flush instead of a whole
one. Replies that cannot be written are put beside the file (`rescue`).
"""

import atexit
import contextlib
import json
import math
import queue
import sqlite3
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from selfeval.asking import sqlite
from selfeval.asking.recordings import export_line
from selfeval.asking.rescue import Rescued, say
from selfeval.asking.sqlite import is_busy, is_dead, is_of_the_disk
from selfeval.errors import StoreError

LEASE = 60.0  # seconds a claim lives without a sign of life from its process
BATCH = 500  # most operations in one commit
PATIENCE = 600.0  # seconds that replies wait in memory while another process holds the file
GRACE = 2.0  # seconds that they wait so when the process is to end
NOTICE = 5.0  # seconds after which a wait is worth a line

SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, request TEXT NOT NULL, response TEXT NOT NULL,
                                    created REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (key TEXT NOT NULL, at REAL NOT NULL, outcome TEXT NOT NULL, detail TEXT);
"""
OTHER_FILE = (
    "Move it away or name another file in SELFEVAL_STORE; `selfeval store import` and `merge` add what copies hold."
)


def connect(path: Path, timeout: float = 30.0) -> sqlite3.Connection:
    """Open the file of a store."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return sqlite.connect(path, SCHEMA, timeout, "FULL")
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"The response store {path} cannot be opened: {error}. {remedy(error)}") from error


def remedy(error: BaseException) -> str:
    """Return what to do about an error of the file."""
    if is_busy(error):
        return "Another process holds it: end that one."
    if is_of_the_disk(error):
        return "Make room or check its permissions, and that it is no folder."
    return OTHER_FILE


# operations, inside a transaction -------------------------------------------------------------------------------------


def claim(
    connection: sqlite3.Connection, key: str, owner: str, held: set[str], rescued: Rescued
) -> tuple[str, dict | None]:
    """Claim a request; return ("ours", "busy" or "rescued", None) or ("stored", the reply).

    held: what the owner knows to be its own. A claim of a process that died is taken over. "rescued": the reply may be
    among those that are to be taken in first.
    """
    row = connection.execute("SELECT response FROM replies WHERE key = ?", (key,)).fetchone()
    if row:
        return "stored", json.loads(row[0])
    row = connection.execute("SELECT owner, expires FROM claims WHERE key = ?", (key,)).fetchone()
    left_over = row and row[0] == owner and key not in held  # a full disk kept us from giving it back
    if row and row[1] > time.time() and not is_dead(row[0]) and not left_over:
        return "busy", None
    if rescued.waiting():
        return "rescued", None
    if row:
        note_attempt(connection, key, "abandoned", f"in flight when {row[0]} ended")
    connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (key, owner, time.time() + LEASE))
    held.add(key)
    return "ours", None


def put(connection: sqlite3.Connection, key: str, request: str, response: str) -> bool:
    """Add a reply and end its claim; return whether it is new."""
    values = (key, request, response, time.time())
    cursor = connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", values)
    connection.execute("DELETE FROM claims WHERE key = ?", (key,))
    return cursor.rowcount == 1


def release(connection: sqlite3.Connection, key: str, owner: str) -> None:
    """End a claim without a reply."""
    connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))


def delete(connection: sqlite3.Connection, keys: list[str]) -> None:
    """Delete replies."""
    connection.executemany("DELETE FROM replies WHERE key = ?", [(key,) for key in keys])


def note_attempt(connection: sqlite3.Connection, key: str, outcome: str, detail: str) -> None:
    """Add an attempt that brought no reply."""
    connection.execute("INSERT INTO attempts VALUES (?, ?, ?, ?)", (key, time.time(), outcome, detail))


def merge(connection: sqlite3.Connection, replies: list[tuple], attempts: list[tuple]) -> int:
    """Add whole rows that are not here yet; return how many replies were new."""
    before = connection.total_changes
    connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", replies)
    new = connection.total_changes - before
    if attempts:
        known = set(connection.execute("SELECT key, at, outcome FROM attempts"))
        fresh = [row for row in attempts if row[:3] not in known]
        connection.executemany("INSERT INTO attempts VALUES (?, ?, ?, ?)", fresh)
    return new


# the thread -----------------------------------------------------------------------------------------------------------


class Writer:
    """The thread that writes one store for this process; the first operation starts it.

    owner, held: it renews the owner's claims on these keys, and ends its other ones.
    """

    def __init__(self, path: Path, owner: str, held: set[str], rescued: Rescued):
        self.path, self.owner, self.held, self.rescued = path, owner, held, rescued
        self._operations: queue.SimpleQueue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._renewed = time.monotonic()
        self._waiting = self._closing = math.inf  # since when it waits for the file, and since when it is to end
        self._told = False

    def submit(self, operation, *arguments) -> Future:
        """Queue an operation for the next commit; the future has its result once that is on disk."""
        future: Future = Future()
        future.set_running_or_notify_cancel()  # from here on a cancelled caller cannot stop what was paid for
        with self._starting:
            self._operations.put((future, operation, arguments))
        self.start()
        return future

    def start(self) -> None:
        """Start the thread unless it runs."""
        with self._starting:
            if self._thread is None or not self._thread.is_alive():  # a forked process has none of its parent's
                self._waiting = self._closing = math.inf
                self._connection, thread = None, threading.Thread(target=self._run, name="selfeval-store", daemon=True)
                thread.start()
                self._thread = thread
                atexit.register(self.close)

    def close(self) -> None:
        """Commit what waits, or rescue it, and end the thread."""
        with self._starting:
            thread = self._thread
            if thread:
                self._operations.put(None)
        if thread:
            thread.join()

    def _run(self) -> None:
        kept: list[tuple] = []
        while True:
            group = kept + self._next_group(0.1 if kept else LEASE / 3)
            if None in group:
                self._closing = min(self._closing, time.monotonic())
                group = [entry for entry in group if entry]
            kept = self._settle(group)
            with self._starting:
                if self._closing < math.inf and not kept and self._operations.empty():
                    self._disconnect()
                    self._thread = None
                    atexit.unregister(self.close)
                    return

    def _next_group(self, timeout: float) -> list:
        try:
            group = [self._operations.get(timeout=timeout)]
        except queue.Empty:
            return []
        while len(group) < BATCH and not self._operations.empty():
            group.append(self._operations.get())
        return group

    def _settle(self, group: list[tuple]) -> list[tuple]:
        """Commit a group and tell its callers; return it where it is worth another try."""
        try:
            results = self._commit(group)
        except Exception as error:  # whatever it is: a writer that ended would leave every caller waiting
            self._disconnect()  # rolls back
            if group and is_busy(error) and self._may_wait():
                return group
            failure = self._failure(error, [arguments for _, operation, arguments in group if operation is put])
            for future, *_ in group:
                future.set_exception(failure)
        else:
            self._waiting = math.inf
            for (future, *_), result in zip(group, results, strict=True):
                future.set_result(result)
        return []

    def _commit(self, group: list[tuple]) -> list:
        # Short: the end of the process may be asked for meanwhile, and what is locked is tried again.
        connection = self._connection = self._connection or connect(self.path, timeout=0.25)
        connection.execute("BEGIN IMMEDIATE")
        found, now = self.rescued.read(), time.time()
        new = merge(connection, [(*row, now) for row in found.rows], [])
        results = [operation(connection, *arguments) for _, operation, arguments in group]
        if renewing := time.monotonic() - self._renewed > LEASE / 3:
            self._renew(connection)
        connection.execute("COMMIT")
        if renewing:
            self._renewed = time.monotonic()
        if found.whole or found.spoilt:
            self.rescued.settle(found, new)
        return results

    def _renew(self, connection: sqlite3.Connection) -> None:
        for (key,) in connection.execute("SELECT key FROM claims WHERE owner = ?", (self.owner,)).fetchall():
            if key in self.held:
                connection.execute("UPDATE claims SET expires = ? WHERE key = ?", (time.time() + LEASE, key))
            else:  # a full disk kept us from giving it back
                release(connection, key, self.owner)

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _may_wait(self) -> bool:
        now = time.monotonic()
        if self._waiting == math.inf:
            self._waiting, self._told = now, False
        if now > self._waiting + NOTICE and not self._told:
            say(f"another process holds {self.path}; replies wait in memory for up to {PATIENCE / 60:.0f} minutes")
            self._told = True
        return now < min(self._waiting + PATIENCE, self._closing + GRACE)

    def _failure(self, error: Exception, paid: list[tuple]) -> StoreError:
        """Return what to tell the callers of a group that cannot be written, once its replies are rescued."""
        if not paid and isinstance(error, StoreError):
            return error
        place, kept = self.path, 0
        with contextlib.suppress(Exception):  # whatever it is: all callers wait for an answer
            place, kept = self.rescued.add([export_line(*reply).encode() for reply in paid])
        also = f", nor the replies kept in {place} ({kept})" if kept else ""
        lost = f"; replies lost: {len(paid) - kept}" if kept < len(paid) else ""
        return StoreError(
            f"The response store {self.path} cannot be written: {error}. {remedy(error)} Then run the same again: "
            f"what it holds is not bought twice{also}{lost}."
        )
