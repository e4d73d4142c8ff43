"""The rate limits of a provider, kept by all processes that share a store."""

import asyncio
import time

from selfeval.providers.models import Provider
from selfeval.providers.store import Store

# seconds of unused rate that may be made up for, or short sleeps would cost a share of it
LAG = 1.0
STALE = 900.0  # seconds ahead that no rate leads to: the clock was set back


class RateLimiter:
    """Requests and tokens a minute of one provider.

    What is due next is due for all processes that share the store.
    """

    def __init__(self, provider: Provider, store: Store):
        self.name = f"{provider.name} {provider.url}"
        self._store = store
        # A minute's worth in 61 seconds, since LAG may be made up for at any time.
        rates = (provider.requests_per_minute, provider.tokens_per_minute)
        self._seconds = [(60 + LAG) / rate for rate in rates]
        self._turn = asyncio.Lock()
        # seconds of the rate of tokens by which replies differed from what was expected
        self._owed = 0.0

    async def wait(self, tokens: int) -> None:
        """Wait until one more request, of so many tokens, keeps the rates."""
        if any(self._seconds):
            async with self._turn:
                while (pause := self._enter(tokens)) > 0:  # noqa: ASYNC110
                    await asyncio.sleep(pause)

    def settle(self, tokens: int) -> None:
        """Correct the estimate by so many tokens, with the next request."""
        self._owed += tokens * self._seconds[1]

    def _enter(self, tokens: int) -> float:
        """Take a place now and return 0, or return the seconds until there may be one."""
        now = time.time()
        costs = (self._seconds[0], tokens * self._seconds[1])
        with self._store.change() as store:
            query = "SELECT requests, tokens FROM rates WHERE name = ?"
            requests, spent = store.execute(query, (self.name,)).fetchone() or (0, 0)
            due = [at if at < now + STALE else now for at in (requests, spent + self._owed)]
            pause = max(0.0, max(due) - now)
            if not pause:
                due = [max(at, now - LAG) + cost for at, cost in zip(due, costs, strict=True)]
            store.execute("INSERT OR REPLACE INTO rates VALUES (?, ?, ?)", (self.name, *due))
        self._owed = 0.0
        return pause
