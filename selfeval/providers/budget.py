"""A ceiling: US dollars that all processes of a store may spend under one name."""

import os
import re
import sqlite3
import uuid

from selfeval.errors import BudgetError, InputError, is_amount
from selfeval.providers import dry_runs
from selfeval.providers.leases import own_name
from selfeval.providers.models import Model

CENT = 1e-9  # dollars that rounding makes or leaves


class Ceiling:
    """US dollars that all processes of a store may spend under one name.

    Each claim reserves what its call can cost. A call that could go beyond is refused with
    `BudgetError`, but not before all that is in flight has ended: what is bought is also stored.
    Without a price a call reserves what the model's dearest one cost so far.
    """

    def __init__(self, name: str, most: float):
        self.name = name
        self.most = most
        self._dearest: dict[str, float] = {}  # model id -> its dearest reply so far
        self._unknown: Model | None = None  # whose replies cost nobody knows what

    @classmethod
    def of(cls, max_cost: float | None = None) -> "Ceiling | None":
        """Return the ceiling of `SELFEVAL_MAX_COST`.

        `NAME:USD`, shared by all who name it, or `USD` for this process. Where there is none, one
        of so many dollars, or None.
        """
        text = os.environ.get("SELFEVAL_MAX_COST", "").strip()
        if text and max_cost is not None:
            raise InputError(
                f"`max_cost` is {max_cost!r} and SELFEVAL_MAX_COST is {text!r}: set one of the two."
            )
        if not text:
            if max_cost is not None and not is_amount(max_cost):
                raise InputError(f"`max_cost` must be US dollars, got {max_cost!r}.")
            return None if max_cost is None else cls(f"{own_name()} {uuid.uuid4().hex}", max_cost)
        name, _, amount = text.rpartition(":")
        if not re.fullmatch(r"([^:]*[^:\s]:)?\d*\.?\d+(e[+-]?\d+)?", text) or not is_amount(
            most := float(amount)
        ):
            raise InputError(f"SELFEVAL_MAX_COST must be US dollars, or NAME:USD, got {text!r}.")
        return cls(name or own_name(), most)

    def at_most(self, model: Model, prompt: int, completion: int) -> float:
        """Return what a call of so many tokens costs at most."""
        if model.price is None:
            return self._dearest.get(model.id, 0.0)
        return (prompt * model.price["input"] + completion * model.price["output"]) / 1e6

    def learn(self, model: Model, cost: float | None) -> None:
        """Take note of what a reply cost.

        After a cost that nobody knows no further call is made; an endpoint of the user's own is
        free then.
        """
        if cost is None and model.provider.hosted:
            self._unknown = model
        self._dearest[model.id] = max(self._dearest.get(model.id, 0.0), cost or 0.0)

    def holder(self, connection: sqlite3.Connection, amount: float) -> str:
        """Return "" where so many dollars are left, else the owner of a call that may leave room.

        Raises `BudgetError` where nothing is in flight.
        """
        query = """SELECT (SELECT total(amount) FROM claims WHERE purse = ?1),
                          (SELECT total(spent) FROM purses WHERE name = ?1)"""
        reserved, spent = connection.execute(query, (self.name,)).fetchone()
        if not self._unknown and spent < self.most >= spent + reserved + amount - CENT:
            return ""
        query = "SELECT owner FROM claims WHERE purse = ? AND amount > ? LIMIT 1"
        if in_flight := connection.execute(query, (self.name, CENT)).fetchone():
            return in_flight[0]
        if self._unknown:
            raise BudgetError(
                f"The ceiling of ${self.most:.6g} cannot be kept: "
                f"`{self._unknown.provider.name}` does not say what "
                f"a reply of {self._unknown.id!r} costs; add its price to data/models.yaml, or "
                f"set no ceiling."
            )
        raise BudgetError(
            f"The next call may cost ${dry_runs.dollars(amount)}, and ${dry_runs.dollars(spent)} "
            f"of the ceiling of "
            f"${self.most:.6g} are "
            "spent. Every answer so far is stored: run the same again with a higher `max_cost`."
        )


def share(max_cost: float | None, hosts: int = 1) -> dict[str, str]:
    """Return the variable that bounds what all clients of a sweep spend; say how exactly.

    hosts: each has a store of its own, and with it a part of the sum.
    """
    if max_cost is None:
        return {}
    print(f"at most {max_cost:g} USD, plus at most what is in flight when they are spent")
    return {"SELFEVAL_MAX_COST": f"sweep-{uuid.uuid4().hex}:{max_cost / hosts}"}
