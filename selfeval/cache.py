"""The response store: every reply that was paid for, once, on disk, for many processes at a time.

One SQLite file (WAL, `synchronous=FULL`). A request is claimed, sent, then stored; a claim of a process that died is
taken over. One writer thread per process groups whatever waits into one commit, so that durability costs a share of a
disk flush instead of a whole one. Not for network file systems: one store per host, then `Store.merge`.
"""

import asyncio
import atexit
import contextlib
import json
import os
import queue
import shutil
import socket
import sqlite3
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path

from selfeval import DATA, ROOT, planning
from selfeval.display import Rich, below_root
from selfeval.errors import InputError, ReplayMiss, StoreError
from selfeval.recordings import canonical, difference, read_jsonl, read_store

LEASE = 60.0  # seconds a claim lives without a sign of life from its process
BATCH = 500  # most operations in one commit
PATIENCE = 600.0  # seconds that replies wait in memory while another process holds the file

SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, request TEXT NOT NULL, response TEXT NOT NULL,
                                    created REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (key TEXT NOT NULL, at REAL NOT NULL, outcome TEXT NOT NULL, detail TEXT);
"""
COLUMNS = {
    "replies": ["key", "request", "response", "created"],
    "claims": ["key", "owner", "expires"],
    "attempts": ["key", "at", "outcome", "detail"],
}
# What a store from another hand may hold to act by itself: a trigger, a view, a virtual table.
FOREIGN = """SELECT type || ' ' || substr(name, 1, 50) FROM sqlite_master
             WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'"""
# What a disk or its permissions cause.
UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class Store(Rich):
    """Replies on disk, with a read-only second layer of recorded replies.

    path: the SQLite file, a relative one from the repository's root; by default `SELFEVAL_STORE` or
    `data/store/responses.sqlite`. recorded: a folder of JSON lines; by default `data/sample`. replay: serve recorded
    replies alone and raise `ReplayMiss` for any other request; by default the environment's `SELFEVAL_REPLAY`.
    """

    def __init__(self, path: Path | str | None = None, recorded: Path | None = None, replay: bool | None = None):
        self.path = place(path)
        self.recorded_folder = recorded or DATA / "sample"
        self.replay = os.environ.get("SELFEVAL_REPLAY") == "1" if replay is None else replay
        self.owner = own_name()
        self._operations: queue.SimpleQueue = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._starting = threading.Lock()
        self._held: set[str] = set()  # claimed by us and not yet given back; other claims of ours are left over

    def __repr__(self) -> str:
        return f"Store({below_root(self.path)!r}{', replay=True' * self.replay})"

    # reading ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _reader(self) -> sqlite3.Connection:
        """Return the connection of the caller's thread: it reads, and claims without a flush to the disk."""
        if planning.folder():
            return planning.read_only(self.path, SCHEMA)
        connection = self._connect()
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA busy_timeout=1000")
        return connection

    @cached_property
    def _recorded(self) -> dict[str, tuple[dict, dict]]:
        files = sorted(self.recorded_folder.glob("*.jsonl"))
        return {key: (request, response) for file in files for key, request, response in read_jsonl(file)}

    def get(self, key: str) -> dict | None:
        """Return the stored reply, or None."""
        if not self.replay:
            with self._reading():
                row = self._reader.execute("SELECT response FROM replies WHERE key = ?", (key,)).fetchone()
                if row:
                    return json.loads(row[0])
        return self._recorded[key][1] if key in self._recorded else None

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Make one sentence of what a damaged store raises, or one that is not ours."""
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise StoreError(f"The response store {self.path} cannot be read: {error}. {_remedy(error)}") from error

    def check_replay(self, request: str) -> None:
        """Raise `ReplayMiss` in replay mode, naming what differs from the nearest recorded request."""
        if self.replay:
            raise ReplayMiss(difference(json.loads(request), [r for r, _ in self._recorded.values()]))

    def rows(self, like: str = "%") -> Iterator[tuple[str, str, str]]:
        """Yield (key, request, response) of the main layer in key order, for models LIKE the pattern."""
        query = "SELECT key, request, response FROM replies WHERE json_extract(request, '$.model') LIKE ? ORDER BY key"
        with self._reading():
            found = self._reader.execute(query, (like,))
        while True:
            with self._reading():
                row = next(found, None)
            if row is None:
                return
            yield row

    def statistics(self) -> list[dict]:
        """Return replies, tokens and cost per provider and model, and how often an attempt failed."""
        names = ("provider", "model", "replies", "prompt_tokens", "completion_tokens", "cost", "unpriced")
        query = """SELECT json_extract(request, '$.provider.provider'), json_extract(request, '$.model'), count(*),
            sum(json_extract(response, '$.usage.prompt')), sum(json_extract(response, '$.usage.completion')),
            sum(json_extract(response, '$.cost')), sum(json_extract(response, '$.cost') IS NULL)
            FROM (SELECT request, CASE WHEN json_valid(response) THEN response ELSE '{}' END AS response FROM replies)
            GROUP BY 1, 2 ORDER BY 1, 2"""  # Infinity, as earlier versions could write it, is not valid
        with self._reading():
            return [dict(zip(names, row, strict=True)) for row in self._reader.execute(query)]

    def outcomes(self) -> dict[str, int]:
        """Return how many attempts ended in each way other than a reply; `abandoned` were in flight at a kill."""
        with self._reading():
            return dict(self._reader.execute("SELECT outcome, count(*) FROM attempts GROUP BY 1 ORDER BY 1"))

    # writing ---------------------------------------------------------------------------------------------------------

    async def claim(self, key: str) -> dict | None:
        """Wait until this request is ours to send (None) or another process has its reply (the reply)."""
        while True:
            state, response = self._claim_here(key) or await self._claim_by_writer(key)
            if state != "busy":
                return response
            await asyncio.sleep(0.1)

    def _claim_here(self, key: str) -> tuple[str, dict | None] | None:
        """Claim in the caller's thread; None where the file is locked. Hand-over to the writer costs ten times more."""
        self._start_writer()  # it renews the claims
        try:
            self._reader.execute("PRAGMA busy_timeout=0")  # no waiting here: it would hold up every other call
            self._reader.execute("BEGIN IMMEDIATE")
            claimed = _claim(self._reader, key, self.owner, self._held)
            self._reader.execute("COMMIT")
        except sqlite3.Error:
            if self._reader.in_transaction:
                self._reader.execute("ROLLBACK")
            return None
        finally:
            self._reader.execute("PRAGMA busy_timeout=1000")
        return claimed

    async def _claim_by_writer(self, key: str) -> tuple[str, dict | None]:
        def give_back(claimed: Future) -> None:
            if not claimed.exception() and claimed.result()[0] == "ours":
                self.release(key)

        claimed = self._submit(_claim, key, self.owner, self._held)
        try:
            return await asyncio.wrap_future(claimed)
        except asyncio.CancelledError:
            claimed.add_done_callback(give_back)  # the writer claims all the same
            raise

    def put(self, key: str, request: str, response: dict) -> Future:
        """Queue a reply to a canonical request for the next commit; the future is done when it is on disk.

        A reply that cannot be written gives its claim back.
        """
        written = self._submit(_put, key, request, json.dumps(response, allow_nan=False))
        written.add_done_callback(lambda done: self.release(key) if done.exception() else self._held.discard(key))
        return written

    def release(self, key: str) -> Future:
        """Give a claim back without a reply."""
        self._held.discard(key)
        return self._submit(_release, key, self.owner)

    def record_attempt(self, key: str, outcome: str, detail: str) -> Future:
        """Note an attempt that brought no reply; it is never served as an answer."""
        detail = detail[:2000].encode(errors="backslashreplace").decode()  # SQLite takes no lone surrogates
        return self._submit(_attempt, key, outcome, detail)

    def import_file(self, path: Path) -> tuple[int, int]:
        """Add the replies of a JSON lines file; return how many were new and how many were there already."""
        rows = list(read_jsonl(path))
        added = [self._submit(_put, key, canonical(request), json.dumps(response)) for key, request, response in rows]
        new = sum(future.result() for future in added)
        return new, len(rows) - new

    def merge(self, path: Path) -> tuple[int, int]:
        """Add the replies and failed attempts of another store; return how many replies were new and how many known.

        Where both have a reply to the same request, ours stays. Merging the same again changes nothing.
        """
        if path.resolve() == self.path.resolve():
            raise InputError(f"{path} is the store itself; name another host's.")
        for _ in read_store(path, BATCH):  # nothing of a file is added unless all of it can be
            pass
        new = total = 0
        for replies, attempts in read_store(path, BATCH):
            new += self._submit(_merge, replies, attempts).result()
            total += len(replies)
        return new, total - new

    def copy(self, target: Path, since: float = 0.0) -> None:
        """Write a store of what was added since a time (of this host's clock) as one file, also to a network drive."""
        self._check_target(target)
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        with tempfile.TemporaryDirectory(prefix="selfeval-") as folder:
            local = Path(folder) / "copy.sqlite"  # SQLite's locks do not hold on network drives
            try:
                self._reader.execute("ATTACH ? AS copied", (str(local),))
                try:
                    for table, at in (("replies", "created"), ("attempts", "at")):
                        query = f"CREATE TABLE copied.{table} AS SELECT * FROM main.{table} WHERE {at} >= ?"
                        self._reader.execute(query, (since,))
                finally:
                    self._reader.execute("DETACH copied")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(local, part)
                part.replace(target)
            except (OSError, sqlite3.Error) as error:
                raise StoreError(f"The store {self.path} cannot be copied to {target}: {error}.") from error
            finally:
                part.unlink(missing_ok=True)

    def export_file(self, path: Path, like: str = "%") -> int:
        """Write the main layer as JSON lines in key order, atomically; return the number of replies."""
        self._check_target(path)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
        count = 0
        try:
            if _is_database(path):
                raise InputError(f"The export {path} would replace a database; name another file.")
            with temporary.open("w", encoding="utf-8") as out:
                for key, request, response in self.rows(like):
                    out.write(f'{{"key":"{key}","request":{request},"response":{response}}}\n')
                    count += 1
            temporary.replace(path)
        except OSError as error:
            raise StoreError(f"The export {path} cannot be written: {error}.") from error
        finally:
            temporary.unlink(missing_ok=True)
        return count

    def _check_target(self, path: Path) -> None:
        """Raise `InputError` where writing this file would destroy the store."""
        for end in ("", "-wal", "-shm", "-journal"):
            part = self.path.with_name(self.path.name + end)
            if path.resolve() == part.resolve() or (path.exists() and part.exists() and path.samefile(part)):
                raise InputError(f"{path} belongs to the store {self.path} itself; name another file.")
        if path.exists() and not path.is_file():  # as root, /dev/null would be replaced by a file
            raise InputError(f"{path} is no ordinary file; name another one.")

    def close(self) -> None:
        """Commit what waits and close the file; a later use opens it again."""
        with self._starting:
            writer = self._writer
            if writer:
                self._operations.put(None)
        if writer:
            writer.join()
        if "_reader" in self.__dict__:
            self.__dict__.pop("_reader").close()

    def _connect(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
            waited = time.monotonic() + 30
            while True:  # of several processes that create the file, the others are refused at once here
                try:
                    connection.execute("PRAGMA journal_mode=WAL")
                    break
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > waited:
                        raise
                    time.sleep(0.02)
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA trusted_schema=OFF")
            if odd := connection.execute(FOREIGN).fetchone():
                connection.close()
                raise StoreError(f"The response store {self.path} holds {odd[0]!r}, which is not ours and could act.")
            connection.executescript(SCHEMA)
            for table, columns in COLUMNS.items():  # seen before anything is bought that could not be kept
                if [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] != columns:
                    connection.close()
                    raise StoreError(
                        f"The response store {self.path} has a table {table} with other columns than "
                        f"{', '.join(columns)}: {_remedy()}"
                    )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The response store {self.path} cannot be opened: {error}. {_remedy(error)}") from error
        return connection

    def _submit(self, operation, *arguments) -> Future:
        future: Future = Future()
        future.set_running_or_notify_cancel()  # from here on a cancelled caller cannot stop what was paid for
        with self._starting:
            self._operations.put((future, operation, arguments))
        self._start_writer()
        return future

    def _start_writer(self) -> None:
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="selfeval-store", daemon=True)
                self._writer.start()
                atexit.register(self.close)

    def _write(self) -> None:
        """Commit operations in groups: whatever queued up while the last commit was under way makes the next one."""
        connection, closing, renewed = None, False, time.monotonic()
        kept, waited = [], 0.0  # what waits while another process holds the file, and since when
        while True:
            batch = kept + self._next_batch(0.1 if kept else LEASE / 3)
            closing = closing or None in batch
            batch, kept = [entry for entry in batch if entry], []
            try:
                connection = connection or self._connect()
                connection.execute("BEGIN IMMEDIATE")
                results = [operation(connection, *arguments) for _, operation, arguments in batch]
                if time.monotonic() - renewed > LEASE / 3:
                    connection.execute("UPDATE claims SET expires = ? WHERE owner = ?", (_lease(), self.owner))
                    renewed = time.monotonic()
                connection.execute("COMMIT")
            except Exception as error:  # whatever it is: a writer that ended would leave every caller waiting
                if connection:
                    connection.close()  # rolls back
                connection = None
                wanted = not closing or any(operation is _put for _, operation, _ in batch)  # at the end, what was paid
                if batch and wanted and is_busy(error) and time.monotonic() < (waited or time.monotonic()) + PATIENCE:
                    if not waited:
                        waited = time.monotonic()
                        text = f"another process holds {self.path}; replies wait in memory for up to"
                        print(f"selfeval: {text} {PATIENCE / 60:.0f} minutes", file=sys.stderr, flush=True)
                    kept = batch
                    continue
                failure = error if isinstance(error, StoreError) else self._cannot_write(error)
                for future, *_ in batch:
                    future.set_exception(failure)
            else:
                for (future, *_), result in zip(batch, results, strict=True):
                    future.set_result(result)
                waited = 0.0
            with self._starting:
                if closing and self._operations.empty():
                    self._writer = None
                    atexit.unregister(self.close)
                    break
        if connection:
            connection.close()

    def _cannot_write(self, error: Exception) -> StoreError:
        return StoreError(
            f"The response store {self.path} cannot be written: {error}. {_remedy(error)} Then run the same again: "
            "what it holds is not bought twice."
        )

    def _next_batch(self, timeout: float) -> list:
        try:
            batch = [self._operations.get(timeout=timeout)]
        except queue.Empty:
            return []
        while len(batch) < BATCH and not self._operations.empty():
            batch.append(self._operations.get())
        return batch


def place(path: Path | str | None = None) -> Path:
    """Return where a store lies, by default the one of `SELFEVAL_STORE`: the same file from every working directory."""
    given = os.environ.get("SELFEVAL_STORE") if path is None else path
    if given is None:
        return DATA / "store" / "responses.sqlite"
    if not str(given).strip() or str(given) == ":memory:":
        raise InputError(
            f"SELFEVAL_STORE must name a file for the replies, got {str(given)!r}; unset it for data/store/."
        )
    try:
        return ROOT / Path(given).expanduser()
    except RuntimeError as error:
        raise InputError(f"The store {str(given)!r} begins with a home that is not known: {error}") from error


def is_busy(error: BaseException | None) -> bool:
    """Tell whether an error says that another process holds a SQLite file."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_damaged(error: BaseException | None) -> bool:
    """Tell whether an error says that a file is no SQLite database, or a damaged one."""
    return _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def _code(error: BaseException | None) -> int | None:
    """Return SQLite's primary code of an error, or of the one that it was made from."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if code is not None else _code(error.__cause__) if error else None


def _remedy(error: BaseException | None = None) -> str:
    if is_busy(error):
        return "Another process holds it: end that one."
    if isinstance(error, OSError) or _code(error) in UNWRITABLE:
        return "Make room or check its permissions, and that it is no folder."
    return (
        "Move it away or name another file in SELFEVAL_STORE; `selfeval store import` and `merge` add what copies hold."
    )


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


# operations of the writer, inside its transaction ---------------------------------------------------------------------


def _claim(connection: sqlite3.Connection, key: str, owner: str, held: set[str]) -> tuple[str, dict | None]:
    row = connection.execute("SELECT response FROM replies WHERE key = ?", (key,)).fetchone()
    if row:
        return "stored", json.loads(row[0])
    row = connection.execute("SELECT owner, expires FROM claims WHERE key = ?", (key,)).fetchone()
    left_over = row and row[0] == owner and key not in held  # a full disk kept us from giving it back
    if row and row[1] > time.time() and not is_dead(row[0]) and not left_over:
        return "busy", None
    if row:
        _attempt(connection, key, "abandoned", f"in flight when {row[0]} ended")
    connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (key, owner, _lease()))
    held.add(key)
    return "ours", None


def _put(connection: sqlite3.Connection, key: str, request: str, response: str) -> bool:
    values = (key, request, response, time.time())
    cursor = connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", values)
    connection.execute("DELETE FROM claims WHERE key = ?", (key,))
    return cursor.rowcount == 1


def _release(connection: sqlite3.Connection, key: str, owner: str) -> None:
    connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))


def _attempt(connection: sqlite3.Connection, key: str, outcome: str, detail: str) -> None:
    connection.execute("INSERT INTO attempts VALUES (?, ?, ?, ?)", (key, time.time(), outcome, detail))


def _merge(connection: sqlite3.Connection, replies: list[tuple], attempts: list[tuple]) -> int:
    before = connection.total_changes
    connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", replies)
    new = connection.total_changes - before
    if attempts:
        known = set(connection.execute("SELECT key, at, outcome FROM attempts"))
        fresh = [row for row in attempts if row[:3] not in known]
        connection.executemany("INSERT INTO attempts VALUES (?, ?, ?, ?)", fresh)
    return new


def _lease() -> float:
    return time.time() + LEASE


def own_name() -> str:
    """Return a new name under which this process claims something, as `is_dead` reads it."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def is_dead(owner: str) -> bool:
    """Tell whether the process of a claim is known to be gone; for another host only the lease can tell."""
    host, pid, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
