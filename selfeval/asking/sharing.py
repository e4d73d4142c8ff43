"""What may be sent now: a provider's rates, and a purse.

Rates and purses hold for all processes of a user on one host, by a small SQLite file beside the state of the embedded
server. Where it is damaged it is begun anew: each process knows what it saw spent and what it has in flight. No reply
waits for it: what cannot be booked at once is booked later. `SELFEVAL_SHARE=n` gives this host the n-th part of both,
for n hosts that work on the same account.
"""

import asyncio
import contextlib
import math
import os
import sqlite3
import sys
import time
from functools import cached_property
from pathlib import Path

import psutil

from selfeval.asking import sqlite
from selfeval.asking.embedded import host_folder
from selfeval.asking.sqlite import is_busy, is_dead, is_foreign, own_name
from selfeval.errors import BudgetError, InputError, PriceError, StoreError
from selfeval.models import Model, Provider

LAG = 1.0  # seconds of unused rate that may be made up for, or short sleeps would cost a share of it
STALE = 900.0  # seconds ahead that no rate leads to: the clock was set back
CENT = 1e-9  # dollars that rounding makes or leaves
PATIENCE = 60.0  # seconds that a call not yet sent waits for the file of rates and purses
GRACE = 2.0  # seconds that what was spent waits for it at the end
MOST_HOSTS = 10_000

SCHEMA = """
CREATE TABLE IF NOT EXISTS rates (name TEXT PRIMARY KEY, requests REAL NOT NULL, tokens REAL NOT NULL);
CREATE TABLE IF NOT EXISTS purses (name TEXT PRIMARY KEY, spent REAL NOT NULL);
CREATE TABLE IF NOT EXISTS reserved (purse TEXT, owner TEXT, amount REAL NOT NULL, PRIMARY KEY (purse, owner));
"""


class _NotNow(StoreError):
    """The shared file is locked, or was damaged and is begun anew when it is next opened."""


class _Shared:
    """The file that the processes of this host share; each change is one short transaction."""

    failing = 0.0  # since when it cannot be changed, 0 while it can

    @cached_property
    def _path(self) -> Path:
        try:
            return host_folder() / "limits.sqlite"
        except OSError as error:
            raise StoreError(
                f"The folder of rates and purses cannot be made: {error}; set TMPDIR to a folder of your own."
            ) from error

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        try:
            return self._open()
        except sqlite3.Error as error:
            if not is_foreign(error):
                raise
        import fcntl

        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes one begins it anew, the others find it
            try:
                return self._open()
            except sqlite3.Error as error:
                if not is_foreign(error):
                    raise
                for end in ("", "-wal", "-shm"):
                    self._path.with_name(self._path.name + end).unlink(missing_ok=True)
                print(f"selfeval: {self._path}: {error}; the rates and purses begin anew", file=sys.stderr, flush=True)
            return self._open()

    def _open(self) -> sqlite3.Connection:
        # Short: the event loop stands still meanwhile, and with it every call in flight.
        connection = sqlite.connect(self._path, SCHEMA, timeout=0.05, synchronous="OFF")
        try:
            if (state := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite.Foreign(state)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def change(self):
        """Yield the connection inside a transaction that no other process interrupts."""
        path = self._path
        try:
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            self.failing = 0.0
        except (sqlite3.Error, OSError) as error:
            self.failing = self.failing or time.monotonic()
            self.close()  # rolls back; the next use opens it again
            kind = _NotNow if is_busy(error) or is_foreign(error) else StoreError
            raise kind(
                f"The file of rates and purses {path} cannot be used: {error}. End what holds it, or move it "
                "away, then run the same again; every reply so far is stored."
            ) from error

    async def patiently(self, step):
        """Return what a step returns; while the file is locked, wait without holding up what is in flight."""
        while True:
            try:
                return step()
            except _NotNow:
                if time.monotonic() > self.failing + PATIENCE:  # at once for those that waited behind the first
                    raise
            await asyncio.sleep(0.1)

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        if connection := self.__dict__.pop("_connection", None):
            connection.close()


def share() -> int:
    """Return how many hosts divide the rates and the purse among them, by `SELFEVAL_SHARE`."""
    text = os.environ.get("SELFEVAL_SHARE", "").strip() or "1"
    if not text.isdecimal() or len(text) > len(str(MOST_HOSTS)) or not 1 <= int(text) <= MOST_HOSTS:
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        raise InputError(
            f"SELFEVAL_SHARE must be a whole number of hosts, at least 1 and at most 10,000, got {shown!r}."
        )
    return int(text)


class Pace:
    """Requests and tokens a minute of one provider: what is due next is due for all processes."""

    def __init__(self, provider: Provider):
        self.name = f"{provider.name} {provider.url}"
        # A minute's worth in 61 seconds, since LAG may be made up for at any time.
        self.seconds = [
            (60 + LAG) * share() / rate for rate in (provider.requests_per_minute, provider.tokens_per_minute)
        ]
        self._shared, self._turn = _Shared(), asyncio.Lock()
        self._owed = 0.0  # seconds of the rate of tokens that are not yet corrected in the file

    async def wait(self, tokens: int) -> None:
        """Wait until one more request, of so many tokens, keeps the rates."""
        if not any(self.seconds):
            return
        async with self._turn:
            while (pause := await self._shared.patiently(lambda: self._enter(tokens))) > 0:  # noqa: ASYNC110  processes set no event
                await asyncio.sleep(pause)

    def settle(self, tokens: int) -> None:
        """Correct the estimate by so many tokens, later where the file cannot be changed now."""
        if self.seconds[1] and tokens:
            self._owed += tokens * self.seconds[1]
            with contextlib.suppress(StoreError):
                with self._shared.change() as connection:
                    self._correct(connection)
                self._owed = 0.0

    def _correct(self, connection) -> None:
        if self._owed:
            connection.execute("UPDATE rates SET tokens = tokens + ? WHERE name = ?", (self._owed, self.name))

    def _enter(self, tokens: int) -> float:
        """Take a place now and return 0, or return the seconds until there may be one."""
        now, costs = time.time(), (self.seconds[0], tokens * self.seconds[1])
        with self._shared.change() as connection:
            self._correct(connection)
            row = connection.execute("SELECT requests, tokens FROM rates WHERE name = ?", (self.name,)).fetchone()
            due = [at if at < now + STALE else now for at in row or (0.0, 0.0)]
            pause = max(0.0, max(due) - now)
            if not pause:
                after = [max(at, now - LAG) + cost for at, cost in zip(due, costs, strict=True)]
                connection.execute("INSERT OR REPLACE INTO rates VALUES (?, ?, ?)", (self.name, *after))
        self._owed = 0.0
        return pause

    def close(self) -> None:
        """Close the shared file."""
        self._shared.close()


class Purse:
    """Dollars that all processes which name it may spend: every call reserves what it can cost at most.

    ceiling: US dollars; a call that could go beyond is refused with `BudgetError`, but not before all that is in
    flight has ended: whatever is bought is also stored.
    """

    def __init__(self, name: str, ceiling: float):
        self.name, self.ceiling = name, ceiling / share()
        self.owner = own_name()
        self._shared, self._turn = _Shared(), asyncio.Lock()
        self._seen: dict[str, float] = {}  # model id -> its dearest reply so far, where it has no price
        self._unknown: Model | None = None  # whose replies cost nobody knows what
        self._held = 0.0  # what our own calls in flight reserve
        self._owed = 0.0  # what our replies cost and is not yet in the file
        self._late = False  # the file does not yet hold what the last settlement changed
        self._known = 0.0  # what was spent when we last saw it, for a file that was begun anew

    @classmethod
    def from_environment(cls) -> "Purse | None":
        """Return the purse of `SELFEVAL_BUDGET`: `NAME:USD`, shared by all who name it, or `USD` for this process."""
        text = os.environ.get("SELFEVAL_BUDGET", "").strip()
        if not text:
            return None
        name, colon, amount = text.rpartition(":")
        try:
            ceiling = float(amount)
        except ValueError:
            ceiling = -1.0
        if not 0 <= ceiling < math.inf or ":" in name or bool(colon) != bool(name.strip()):
            raise InputError(
                f"SELFEVAL_BUDGET must be US dollars, or NAME:USD with a NAME without colons, got {text!r}."
            )
        return cls(name or f"{os.getpid()} {psutil.Process().create_time()}", ceiling)

    def price(self, model: Model, prompt: int, completion: int) -> float:
        """Return what a call of so many tokens costs at most; without a price, what the dearest one did so far."""
        if model.price is None:
            return self._seen.get(model.id, 0.0)
        return (prompt * model.price["input"] + completion * model.price["output"]) / 1e6

    async def reserve(self, amount: float) -> None:
        """Wait until so much may be spent; raise `BudgetError` once nothing is in flight that could still free it."""
        async with self._turn:
            while not await self._shared.patiently(lambda: self._reserve(amount)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    def _reserve(self, amount: float) -> bool:
        with self._shared.change() as connection:
            spent, reserved = self._state(connection)
            fits = spent + reserved + amount <= self.ceiling + CENT and spent < self.ceiling
            fits = fits and not self._unknown
            if fits:
                self._hold(connection, self._held + amount)
        self._known, self._owed, self._late = spent, 0.0, False
        if fits:
            self._held += amount
            return True
        if reserved > CENT:
            return False
        if self._unknown:
            raise PriceError(
                f"The ceiling of ${self.ceiling:.6g} cannot be kept: `{self._unknown.provider.name}` does not say what "
                f"a reply of {self._unknown.id!r} costs, and data/models.yaml has no `price` for it; add one, or go "
                "without a ceiling."
            )
        part = f", the share of one of {share()} hosts" if share() > 1 else ""
        raise BudgetError(
            f"The next call may cost ${amount:.4f}, and ${spent:.4f} of the ceiling of ${self.ceiling:.6g}{part} are "
            "spent. Every reply so far is stored: run the same again with a higher one."
        )

    def settle(self, model: Model, amount: float, cost: float | None) -> None:
        """Give back what was reserved for a call and book what it cost, later where the file cannot be changed now.

        After a cost that nobody knows no further call is made; an endpoint of the user's own is free then.
        """
        if cost is None and model.provider.hosted:
            self._unknown = model
        self._seen[model.id] = max(self._seen.get(model.id, 0.0), cost or 0.0)
        self._held = max(0.0, self._held - amount)
        self._owed += cost or 0.0
        self._late = True
        with contextlib.suppress(StoreError):
            self.spent()

    def spent(self) -> float:
        """Return the US dollars spent so far, by all who share the purse."""
        with self._shared.change() as connection:
            spent, _ = self._state(connection)
        self._known, self._owed, self._late = spent, 0.0, False
        return spent

    def _state(self, connection) -> tuple[float, float]:
        """Book what we owe and return (spent, reserved).

        What a process reserved that died counts as spent, since it may have been.
        """
        rows = connection.execute("SELECT owner, amount FROM reserved WHERE purse = ?", (self.name,)).fetchall()
        for owner, amount in rows:
            if owner != self.owner and is_dead(owner):
                self._spend(connection, amount)
                connection.execute("DELETE FROM reserved WHERE purse = ? AND owner = ?", (self.name, owner))
        query = "SELECT spent FROM purses WHERE name = ?"
        spent = (connection.execute(query, (self.name,)).fetchone() or (0.0,))[0]
        if behind := max(0.0, self._known - spent) + self._owed:
            self._spend(connection, behind)
        self._hold(connection, self._held)
        held = connection.execute("SELECT sum(amount) FROM reserved WHERE purse = ?", (self.name,)).fetchone()
        return spent + behind, held[0]

    def _hold(self, connection, amount: float) -> None:
        connection.execute("INSERT OR REPLACE INTO reserved VALUES (?, ?, ?)", (self.name, self.owner, amount))

    def _spend(self, connection, amount: float) -> None:
        query = "INSERT INTO purses VALUES (?, ?) ON CONFLICT DO UPDATE SET spent = spent + excluded.spent"
        connection.execute(query, (self.name, amount))

    def close(self) -> None:
        """Book what is still owed and close the shared file."""
        until = time.monotonic() + GRACE
        while self._late:
            try:
                self.spent()
            except StoreError as error:
                if not isinstance(error, _NotNow) or time.monotonic() > until:
                    booked = f"${self._owed:.4f} of the purse {self.name!r} could not be booked"
                    print(f"selfeval: {booked}: {error}", file=sys.stderr, flush=True)
                    break
                time.sleep(0.1)
        self._shared.close()
