"""The response store: every reply that was paid for, once, on disk, for many processes at a time.

One SQLite file (WAL, `synchronous=FULL`). A request is claimed, sent, then stored; a claim of a process that died is
taken over. Not for network file systems: one store per host, then `Store.merge`.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path

from selfeval import DATA, ROOT
from selfeval.asking import dryrun, replies
from selfeval.asking.recordings import (
    MOST_AGAIN,
    STORED,
    UNANSWERED,
    canonical_row,
    difference,
    export_line,
    numbered,
    read_jsonl,
    read_store,
    request_key,
)
from selfeval.asking.rescue import Rescued
from selfeval.asking.sqlite import own_name
from selfeval.errors import InputError, ReplayMiss, StoreError
from selfeval.files import below_root


class Store:
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
        self._held: set[str] = set()  # claimed by us and not yet given back; other claims of ours are left over
        self._rescued = Rescued(self.path)
        self._writer = replies.Writer(self.path, self.owner, self._held, self._rescued)
        self._claiming = threading.Lock()

    def __repr__(self) -> str:
        return f"Store({below_root(self.path)!r}{', replay=True' * self.replay})"

    # reading ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _reader(self) -> sqlite3.Connection:
        """Return the connection of the caller's thread: it reads, and claims without a flush to the disk."""
        if dryrun.folder():
            return dryrun.read_only(self.path, replies.SCHEMA)
        connection = replies.connect(self.path)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA busy_timeout=1000")
        return connection

    @cached_property
    def _recorded(self) -> dict[str, tuple[dict, dict]]:
        files = sorted(self.recorded_folder.glob("*.jsonl"))
        return {key: (request, response) for file in files for key, request, response in read_jsonl(file)}

    def get(self, key: str) -> dict | None:
        """Return the stored reply to a request, or None.

        Where it was asked again it is the first reply that is an answer or a refusal, else the last.
        """
        here, found = {} if self.replay else self._stored(key), None
        for each in (numbered(key, number) for number in range(MOST_AGAIN + 1)):
            if each in here or each in self._recorded:
                found = here[each] if each in here else self._recorded[each][1]
                if found.get("status", "ok") not in UNANSWERED:
                    break
        return found

    def _stored(self, key: str) -> dict[str, dict]:
        """Return the replies of the main layer to a request, by the keys under which they are stored."""
        query = "SELECT key, response FROM replies WHERE key BETWEEN ? AND ?"
        with self._reading():
            rows = self._reader.execute(query, (key, numbered(key, MOST_AGAIN)))
            return {each: json.loads(response) for each, response in rows}

    def forget(
        self, like: str = "%", statuses: Collection[str] = (), since: float = 0.0, *, dry_run: bool = False
    ) -> dict[tuple[str, str], int]:
        """Delete requests with all their replies; return {(model, status of what was served): how many}.

        like: models LIKE the pattern, in which _ is itself. statuses: of what is served, () = any. since: stored at
        this time or later. dry_run: delete nothing.
        """
        self._take_in()
        query = """SELECT key, json_extract(request, '$.model'), created, CASE WHEN json_valid(response)
            THEN json_extract(response, '$.status') END FROM replies
            WHERE json_extract(request, '$.model') LIKE replace(?, '_', '\\_') ESCAPE '\\' ORDER BY key"""
        chains: dict[str, list[tuple]] = {}
        with self._reading():
            for key, *row in self._reader.execute(query, (like,)):
                chains.setdefault(request_key(key), []).append((key, *row))
        gone, counts = [], Counter()
        for chain in chains.values():
            _, model, created, last = chain[-1]
            status = next((s or "ok" for *_, s in chain if s not in UNANSWERED), last)
            if created >= since and status in (statuses or STORED):
                counts[model, status] += 1
                gone += [key for key, *_ in chain]
        if gone and not dry_run:
            self._writer.submit(replies.delete, gone).result()
        return dict(counts)

    def _take_in(self) -> None:
        """Let the writer add what was rescued, unless another process holds the file."""
        if self._rescued.waiting() and not dryrun.folder():
            with contextlib.suppress(StoreError, TimeoutError):
                self._writer.submit(lambda connection: None).result(replies.GRACE)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Make one sentence of what a damaged store raises, or one that is not ours."""
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise StoreError(
                f"The response store {self.path} cannot be read: {error}. {replies.remedy(error)}"
            ) from error

    def check_replay(self, request: str) -> None:
        """Raise `ReplayMiss` in replay mode, naming what differs from the nearest recorded request."""
        if self.replay:
            raise ReplayMiss(difference(json.loads(request), [r for r, _ in self._recorded.values()]))

    def rows(self, like: str = "%") -> Iterator[tuple[str, str, str]]:
        """Yield (key, request, response) of the main layer in key order, for models LIKE the pattern."""
        self._take_in()
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
        self._take_in()
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
            if state in ("ours", "stored"):
                return response
            await asyncio.sleep(0.1)

    def _claim_here(self, key: str) -> tuple[str, dict | None] | None:
        """Claim in the caller's thread; None where that cannot be. Hand-over to the writer costs ten times more."""
        self._writer.start()  # it renews the claims
        connection = self._reader
        if not self._claiming.acquire(blocking=False):  # another thread's transaction is under way
            return None
        try:
            connection.execute("PRAGMA busy_timeout=0")  # no waiting here: it would hold up every other call
            connection.execute("BEGIN IMMEDIATE")
            claimed = replies.claim(connection, key, self.owner, self._held, self._rescued)
            connection.execute("COMMIT")
        except (sqlite3.Error, ValueError):  # the writer says what is wrong
            return None
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.execute("PRAGMA busy_timeout=1000")
            self._claiming.release()
        return None if claimed[0] == "rescued" else claimed

    async def _claim_by_writer(self, key: str) -> tuple[str, dict | None]:
        def give_back(claimed: Future) -> None:
            if not claimed.exception() and claimed.result()[0] == "ours":
                self.release(key)

        claimed = self._writer.submit(replies.claim, key, self.owner, self._held, self._rescued)
        try:
            return await asyncio.wrap_future(claimed)
        except asyncio.CancelledError:
            claimed.add_done_callback(give_back)  # the writer claims all the same
            raise

    def put(self, key: str, request: str, response: dict) -> Future:
        """Queue a reply to a canonical request for the next commit; the future is done when it is on disk.

        A reply that cannot be written gives its claim back.
        """
        written = self._writer.submit(replies.put, key, request, json.dumps(response, allow_nan=False))
        written.add_done_callback(lambda done: self.release(key) if done.exception() else self._held.discard(key))
        return written

    def release(self, key: str) -> Future:
        """Give a claim back without a reply."""
        self._held.discard(key)
        return self._writer.submit(replies.release, key, self.owner)

    def record_attempt(self, key: str, outcome: str, detail: str) -> Future:
        """Note an attempt that brought no reply; it is never served as an answer."""
        detail = detail[:2000].encode(errors="backslashreplace").decode()  # SQLite takes no lone surrogates
        return self._writer.submit(replies.note_attempt, key, outcome, detail)

    def import_file(self, path: Path) -> tuple[int, int]:
        """Add the replies of a JSON lines file; return how many were new and how many were there already."""
        now = time.time()
        rows = [(*canonical_row(*row), now) for row in read_jsonl(path)]
        new = self._writer.submit(replies.merge, rows, []).result()
        return new, len(rows) - new

    def merge(self, path: Path) -> tuple[int, int]:
        """Add the replies and failed attempts of another store; return how many replies were new and how many known.

        Where both have a reply to the same request, ours stays. Merging the same again changes nothing. What was
        rescued beside the other store is added too, and left where it is.
        """
        if path.resolve() == self.path.resolve():
            raise InputError(f"{path} is the store itself; name another host's.")
        for _ in read_store(path, replies.BATCH):  # nothing of a file is added unless all of it can be
            pass
        new = total = 0
        for rows, attempts in read_store(path, replies.BATCH):
            new += self._writer.submit(replies.merge, rows, attempts).result()
            total += len(rows)
        known = total - new
        for file in Rescued(path).waiting():
            more, again = self.import_file(file)
            new, known = new + more, known + again
        return new, known

    def copy(self, target: Path, since: float = 0.0) -> None:
        """Write a store of what was added since a time (of this host's clock) as one file, also to a network drive."""
        self._check_target(target)
        self._take_in()
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
                for row in self.rows(like):
                    out.write(export_line(*row))
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
        self._writer.close()
        if "_reader" in self.__dict__:
            self.__dict__.pop("_reader").close()


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


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
