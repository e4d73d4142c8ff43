"""Every reply that was paid for, once, on disk, for many processes at a time.

A ledger of replies, failed attempts and the claims of what is in flight. A request is claimed, sent, then stored; the
claim of a process that died is taken over. Each change is one short transaction in the caller's thread. One store per
host, then `Store.merge`.
"""

import asyncio
import contextlib
import itertools
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from selfeval.asking import recordings
from selfeval.asking.embedded import host_folder
from selfeval.asking.ledger import Ledger, in_flight, is_left, own_name, say
from selfeval.asking.recordings import MOST_AGAIN, UNANSWERED, export_line, numbered
from selfeval.errors import InputError, ReplayMiss, StoreError
from selfeval.files import below_root, replacing
from selfeval.paths import DATA, HOME

OTHER_FILE = (
    "Move it away or name another file in SELFEVAL_STORE; `selfeval store import` and `merge` add what copies hold."
)


class Store(Ledger):
    """Replies on disk, with a read-only second layer of recorded replies.

    path: the SQLite file, a relative one from the repository's root; by default `SELFEVAL_STORE` or
    `data/store/responses.sqlite`. recorded: a folder of JSON lines (.jsonl, .jsonl.xz); by default `data/sample`, in
    replay mode then `data/recorded`. replay: serve recorded replies alone and raise `ReplayMiss` for any other request;
    a folder is read instead of `data/recorded`; by default the environment's `SELFEVAL_REPLAY`, 1 or a folder.
    """

    def __init__(self, path: Path | str | None = None, recorded: Path | None = None, replay: bool | Path | None = None):
        super().__init__(place(path), "response store", OTHER_FILE)
        given = os.environ.get("SELFEVAL_REPLAY") if replay is None else replay
        self.replay = given not in (None, False, "", "0")
        self.recorded_folders = [recorded or DATA / "sample"]
        if self.replay and given not in (True, "1"):
            self.recorded_folders.append(_folder(given))
        elif self.replay and recorded is None:
            self.recorded_folders.append(DATA / "recorded")
        self._lines: dict[Path, dict[str, tuple[Path, int, bytes]]] = {}  # of recorded folders that were read
        self.failure: StoreError | None = None  # why nothing more is to be sent

    def __repr__(self) -> str:
        return f"Store({below_root(self.path)!r}{', replay=True' * self.replay})"

    def close(self) -> None:
        """Close the file; a later use opens it again, and tries again to write."""
        super().close()
        self.failure = None

    # reading ---------------------------------------------------------------------------------------------------------

    def recorded_files(self) -> list[Path]:
        """Return the files of recorded replies."""
        return [file for folder in self.recorded_folders for file in recordings.files(folder)]

    def _recorded(self, key: str) -> tuple[Path, int, bytes] | None:
        """Return the line of a recorded reply; a folder is read when the ones before it lack a key."""
        for folder in self.recorded_folders:
            if folder not in self._lines:
                self._lines[folder] = recordings.by_key(folder)
            if line := self._lines[folder].get(key):
                return line
        return None

    def get(self, key: str) -> dict | None:
        """Return the stored reply to a request, or None; see `look_up`."""
        return self.look_up([key]).get(key)

    def look_up(self, keys: Sequence[str]) -> dict[str, dict]:
        """Return {key: reply} of the requests that have one stored.

        Where one was asked again it is the first reply that is an answer or a refusal, else the last.
        """
        found: dict[str, str] = {}
        if not self.replay:
            query = """SELECT replies.key, response FROM json_each(?) AS asked CROSS JOIN replies
                       ON replies.key BETWEEN asked.value AND asked.value || ' ' || ?"""
            with self.read() as connection:
                found = dict(connection.execute(query, (json.dumps(list(keys)), MOST_AGAIN)))
        served: dict[str, dict] = {}
        for key in dict.fromkeys(keys):
            for each in (numbered(key, number) for number in range(MOST_AGAIN + 1)):
                if each not in found and (line := self._recorded(each)):
                    found[each] = recordings.read_line(*line)[2]
                if each in found:
                    with self._in_words("read"):
                        served[key] = json.loads(found[each])
                    if served[key].get("status", "ok") not in UNANSWERED:
                        break
        return served

    def check_replay(self, request: str) -> None:
        """Raise `ReplayMiss` in replay mode, naming what differs from the nearest recorded request."""
        if self.replay:
            lines = [line for each in self._lines.values() for line in each.values()]  # all: the request is in none
            recorded = [json.loads(recordings.read_line(*line)[1]) for line in lines]
            raise ReplayMiss(recordings.difference(json.loads(request), recorded))

    def rows(self, like: str = "%", since: float = 0.0) -> Iterator[tuple[str, str, str]]:
        """Yield (key, request, response) of the main layer in key order; see `export_file`."""
        query = """SELECT key, request, response FROM replies
                   WHERE json_extract(request, '$.model') LIKE ? AND created >= ? ORDER BY key"""
        with self._in_words("read"):
            yield from self._connect().execute(query, (like, since))

    def statistics(self) -> list[dict]:
        """Return replies, tokens and cost per provider and model."""
        names = ("provider", "model", "replies", "prompt_tokens", "completion_tokens", "cost", "unpriced")
        query = """SELECT json_extract(request, '$.provider.provider'), json_extract(request, '$.model'), count(*),
            sum(json_extract(response, '$.usage.prompt')), sum(json_extract(response, '$.usage.completion')),
            sum(json_extract(response, '$.cost')), sum(json_extract(response, '$.cost') IS NULL)
            FROM (SELECT request, CASE WHEN json_valid(response) THEN response ELSE '{}' END AS response FROM replies)
            GROUP BY 1, 2 ORDER BY 1, 2"""  # Infinity, as earlier versions could write it, is not valid
        with self.read() as connection:
            return [dict(zip(names, row, strict=True)) for row in connection.execute(query)]

    def outcomes(self) -> dict[str, int]:
        """Return how many attempts ended in each way other than a reply; `abandoned` were in flight at a kill."""
        with self.read() as connection:
            return dict(connection.execute("SELECT outcome, count(*) FROM attempts GROUP BY 1 ORDER BY 1"))

    # in flight -------------------------------------------------------------------------------------------------------

    async def claim(self, key: str, purse=None, amount: float = 0.0) -> dict | None:
        """Wait until this request is ours to send (None) or another process has its reply (the reply).

        purse: a ceiling (`sharing.Purse`) under which the claim reserves an amount in the same transaction. Raises
        `BudgetError` where that cannot fit.
        """
        while True:
            response, owner = await self.write(lambda connection: self._claim(connection, key, purse, amount))
            if not owner:
                return response
            await asyncio.sleep(0.1)

    def _claim(self, connection: sqlite3.Connection, key: str, purse, amount: float) -> tuple[dict | None, str]:
        """Return (the reply, ""), (None, "") where the claim is ours now, or (None, the owner) of who holds it."""
        query = """SELECT response, NULL, NULL FROM replies WHERE key = ?1
                   UNION ALL SELECT NULL, owner, since FROM claims WHERE key = ?1"""
        response, owner, since = connection.execute(query, (key,)).fetchone() or (None, "", 0.0)
        if response is not None:
            return json.loads(response), ""
        held = f"{self.path} {key}"
        if owner and not is_left(owner, since, held):
            return None, owner
        if purse and (holder := purse.reserve(connection, held, amount)):
            return None, holder
        if owner:
            self._note(connection, key, "abandoned", f"in flight when {owner} ended")
        values = (key, own_name(), time.time(), purse and amount, purse and purse.name)
        connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)", values)
        in_flight.add(held)
        return None, ""

    async def put(self, key: str, request: str, response: dict, purse=None, cost: float = 0.0) -> None:
        """Store a reply to a canonical request, book its cost and end its claim.

        A reply that cannot be written is put into an export file, which the `StoreError` names.
        """
        text = json.dumps(response, allow_nan=False)

        def step(connection: sqlite3.Connection) -> None:
            values = (key, request, text, time.time())
            connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", values)
            self._end(connection, key, purse, cost)

        try:
            await self.write(step)
        except BaseException as error:  # also the end of the process: it was paid for
            self._keep(export_line(key, request, text).encode(), error)
            if isinstance(error, StoreError):
                raise self.failure from error
            say(str(self.failure))
            raise
        finally:
            in_flight.discard(f"{self.path} {key}")

    def release(self, key: str, purse=None, cost: float | None = None, outcome: str = "", detail: str = "") -> None:
        """Give a claim back without a reply, and note how that came, if an outcome is given.

        cost: dollars of replies that are not stored. Where the file cannot be written now, the claim is left over.
        """
        in_flight.discard(f"{self.path} {key}")

        def step(connection: sqlite3.Connection) -> None:
            if outcome:
                self._note(connection, key, outcome, detail)
            self._end(connection, key, purse, cost)

        self._try(step)

    def _end(self, connection: sqlite3.Connection, key: str, purse, cost: float) -> None:
        connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, own_name()))
        if purse:
            purse.book(connection, f"{self.path} {key}", cost)

    def record_attempt(self, key: str, outcome: str, detail: str) -> None:
        """Note an attempt that brought no reply, unless the file cannot be written now; it is never served."""
        self._try(lambda connection: self._note(connection, key, outcome, detail))

    def _note(self, connection: sqlite3.Connection, key: str, outcome: str, detail: str) -> None:
        connection.execute("INSERT INTO attempts VALUES (?, ?, ?, ?)", (key, time.time(), outcome, detail[:2000]))

    def _keep(self, line: bytes, error: BaseException) -> None:
        """Put a reply that cannot be written into an export file, beside the store or among the temporary files."""
        said = str(error) if isinstance(error, StoreError) else f"A reply could not be written to {self.path} any more."
        for folder in (self.path.parent, host_folder()):
            file = folder / f"{self.path.name}.unwritten-{time.time_ns()}.jsonl"
            try:
                file.write_bytes(line)
            except OSError:
                with contextlib.suppress(OSError):
                    file.unlink()
                continue
            files = file.with_name(f"{self.path.name}.unwritten-*.jsonl")
            said += f" Then run the same again, after `selfeval store import {files}`, which adds what it lacks."
            break
        else:
            said += " A reply that was paid for is lost, since there is no room beside it either."
            say(said)
        self.failure = StoreError(said)

    # many at once ----------------------------------------------------------------------------------------------------

    def import_file(self, path: Path, created: float | None = None) -> tuple[int, int]:
        """Add the replies of a JSON lines file, all or none; return how many were new and how many known.

        path: compressed where it ends in .xz. created: when they count as stored (a time of this host's clock), by
        default now.
        """
        created = time.time() if created is None else created
        return self._add((*recordings.read_line(*line), created) for line in recordings.read_lines(path))

    def merge(self, path: Path) -> tuple[int, int]:
        """Add the replies of another store, all or none; return how many were new and how many known.

        Where both have a reply to the same request, ours stays. Merging the same again changes nothing. What version
        0.1 rescued beside the other store is added too.
        """
        if path.resolve() == self.path.resolve():
            raise InputError(f"{path} is the store itself; name another host's.")
        other = Ledger(path, "response store", "Name another one.")
        with other._in_words("read"), contextlib.closing(other._open_to_read()) as connection:
            rows = connection.execute("SELECT key, request, response, created FROM replies")
            added = [self._add(recordings.read_rows(path, rows))]
        rescued = path.with_name(f"{path.name}.rescued").glob("*.jsonl")
        new, known = zip(*added, *map(self.import_file, sorted(rescued)), strict=True)
        return sum(new), sum(known)

    def _add(self, rows: Iterable[tuple]) -> tuple[int, int]:
        """Add whole rows that are not here yet; return how many were new and how many known."""
        count = itertools.count()

        def step(connection: sqlite3.Connection) -> int:
            before = connection.total_changes
            counted = (row for row, _ in zip(rows, count, strict=False))
            connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", counted)
            return connection.total_changes - before

        new = self.write_now(step)
        return new, next(count) - new

    def export_file(self, path: Path, like: str = "%", since: float = 0.0) -> int:
        """Write the main layer as JSON lines in key order, whole or not at all; return the number of replies.

        In replay mode, only replies that the recordings lack. path: compressed where it ends in .xz. like: models LIKE
        the pattern. since: stored at this time (of this host's clock) or later.
        """
        if path.exists():
            raise InputError(f"{path} exists; name a new file for the replies.")
        number = 0
        with replacing(path) as part:
            with recordings.opener(path)(part, "wt", encoding="utf-8") as out:
                rows = (row for row in self.rows(like, since) if not (self.replay and self._recorded(row[0])))
                for number, row in enumerate(rows, 1):  # noqa: B007
                    out.write(export_line(*row))
            part.replace(path)
        return number


def _folder(given: Path | str) -> Path:
    """Return the folder of recordings that `SELFEVAL_REPLAY` names: a relative one from the repository's root."""
    folder = HOME / Path(given).expanduser()
    if not folder.is_dir():
        raise InputError(f"SELFEVAL_REPLAY must be 1 or a folder of recorded replies, got {str(given)!r}.")
    return folder


def place(path: Path | str | None = None) -> Path:
    """Return where a store lies, by default the one of `SELFEVAL_STORE`: the same file from every working directory."""
    given = os.environ.get("SELFEVAL_STORE") if path is None else path
    if given is None:
        return DATA / "store" / "responses.sqlite"
    if not str(given).strip() or str(given) == ":memory:":
        raise InputError(
            f"SELFEVAL_STORE must name a file for the replies, got {str(given)!r}; unset it for data/store/."
        )
    return HOME / Path(given).expanduser()
