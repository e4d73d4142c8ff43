"""The file of the response store: its tables, and the one thread of a process that writes them.

The thread groups whatever waits into one commit, so that durability costs a share of a disk flush instead of a whole
one. Replies that cannot be written are rescued: put beside the file as JSON lines, which its next use takes in.
"""

import atexit
import contextlib
import json
import math
import os
import queue
import sqlite3
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from selfeval import sqlite
from selfeval.errors import InputError, StoreError
from selfeval.recordings import canonical, read_jsonl
from selfeval.sqlite import is_busy, is_dead, is_of_the_disk

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
    """Open the file of a store, take in what was rescued beside it, and return the connection."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite.connect(path, SCHEMA, timeout, "FULL")
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"The response store {path} cannot be opened: {error}. {remedy(error)}") from error
    take_in(connection, path)
    return connection


def remedy(error: BaseException) -> str:
    """Return what to do about an error of the file."""
    if is_busy(error):
        return "Another process holds it: end that one."
    if is_of_the_disk(error):
        return "Make room or check its permissions, and that it is no folder."
    return OTHER_FILE


def jsonl(key: str, request: str, response: str) -> str:
    """Return a reply as a line of an export."""
    return f'{{"key":"{key}","request":{request},"response":{response}}}\n'


# operations, inside a transaction -------------------------------------------------------------------------------------


def claim(connection: sqlite3.Connection, key: str, owner: str, held: set[str]) -> tuple[str, dict | None]:
    """Claim a request; return ("ours" or "busy", None) or ("stored", the reply).

    held: what the owner knows to be its own. A claim of a process that died is taken over.
    """
    row = connection.execute("SELECT response FROM replies WHERE key = ?", (key,)).fetchone()
    if row:
        return "stored", json.loads(row[0])
    row = connection.execute("SELECT owner, expires FROM claims WHERE key = ?", (key,)).fetchone()
    left_over = row and row[0] == owner and key not in held  # a full disk kept us from giving it back
    if row and row[1] > time.time() and not is_dead(row[0]) and not left_over:
        return "busy", None
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

    owner: whose claims it renews.
    """

    def __init__(self, path: Path, owner: str):
        self.path, self.owner = path, owner
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
            if self._thread is None:
                self._waiting = self._closing = math.inf
                self._thread = threading.Thread(target=self._run, name="selfeval-store", daemon=True)
                self._thread.start()
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
        connection = self._connection = self._connection or connect(self.path, timeout=1.0)
        connection.execute("BEGIN IMMEDIATE")
        results = [operation(connection, *arguments) for _, operation, arguments in group]
        if renewing := time.monotonic() - self._renewed > LEASE / 3:
            lease = time.time() + LEASE
            connection.execute("UPDATE claims SET expires = ? WHERE owner = ?", (lease, self.owner))
        connection.execute("COMMIT")
        if renewing:
            self._renewed = time.monotonic()
        return results

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _may_wait(self) -> bool:
        now = time.monotonic()
        if self._waiting == math.inf:
            self._waiting, self._told = now, False
        if now > self._waiting + NOTICE and not self._told:
            minutes = f"{PATIENCE / 60:.0f} minutes"
            text = f"selfeval: another process holds {self.path}; replies wait in memory for up to {minutes}"
            print(text, file=sys.stderr, flush=True)
            self._told = True
        return now < min(self._waiting + PATIENCE, self._closing + GRACE)

    def _failure(self, error: Exception, paid: list[tuple]) -> StoreError:
        """Return what to tell the callers of a group that cannot be written, once its replies are rescued."""
        if not paid and isinstance(error, StoreError):
            return error
        place, kept = self.path, 0
        with contextlib.suppress(OSError):
            place, kept = _rescue(self.path, [jsonl(*reply).encode() for reply in paid])
        also = f", nor the replies kept in {place} ({kept})" if kept else ""
        lost = f"; replies lost: {len(paid) - kept}" if kept < len(paid) else ""
        return StoreError(
            f"The response store {self.path} cannot be written: {error}. {remedy(error)} Then run the same again: "
            f"what it holds is not bought twice{also}{lost}."
        )


# rescue ---------------------------------------------------------------------------------------------------------------


def _beside(path: Path) -> Path:
    """Return the folder of rescued replies; it exists while there are any."""
    return path.with_name(f"{path.name}.rescued")


def _rescue(path: Path, lines: list[bytes]) -> tuple[Path, int]:
    """Put replies beside the file that they cannot be written to; return where, and for how many there was room."""
    target = _beside(path) / f"{time.time_ns()}-{os.getpid()}.jsonl"
    part, kept, end, out = target.with_suffix(".part"), 0, 0, None
    while not out:  # another process may take the empty folder away
        _beside(path).mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            out = part.open("wb", buffering=0)
    with out:
        with contextlib.suppress(OSError):
            for line in lines:
                if out.write(line) < len(line):
                    break
                kept, end = kept + 1, end + len(line)
        out.truncate(end)
        os.fsync(out.fileno())
    part.replace(target) if kept else part.unlink()
    return target, kept


_told: set[Path] = set()


def take_in(connection: sqlite3.Connection, path: Path) -> None:
    """Add what was rescued to a store; what it still cannot take stays where it is."""
    if not _beside(path).is_dir():
        return
    for file in sorted(_beside(path).glob("*.jsonl")):
        try:
            rows = list(read_jsonl(file))
            connection.execute("BEGIN IMMEDIATE")
            for key, request, response in rows:
                put(connection, key, canonical(request), json.dumps(response))
            connection.execute("COMMIT")
        except (sqlite3.Error, InputError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if file.exists() and file not in _told:  # else another process took it in
                print(f"selfeval: the replies in {file} cannot be taken in: {error}", file=sys.stderr, flush=True)
                _told.add(file)
        else:
            file.unlink(missing_ok=True)
            print(f"selfeval: replies rescued earlier, now in {path}: {len(rows)}", file=sys.stderr, flush=True)
    with contextlib.suppress(OSError):  # not while any is left
        _beside(path).rmdir()
