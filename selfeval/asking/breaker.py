"""Whether a model is worth another call: a bad key costs one request, an outage of minutes costs time."""

import asyncio
import contextlib

UNPROVEN = 3  # failed calls after which a model that never answered is given up
IN_A_ROW = 8  # failed calls after which a model that did answer is only tried, one call at a time
PAUSES = (30.0, 60.0, 120.0)  # seconds before each trial; after the last one the model is given up


class Breaker:
    """Whether one model is worth another call.

    Until a first call succeeds its calls go one at a time, so that a bad key costs one request. After many failures in
    a row they do so again, with growing pauses, so that an outage of minutes costs time and not a sweep; a model that
    does not come back is given up for the rest of this client's life.
    """

    def __init__(self):
        self.given_up: str | None = None  # why no further call makes sense
        self._proven, self._answered, self._failed, self._trials, self._last = False, False, 0, 0, ""
        self._one = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self):
        """Hold a call back until it may be made."""
        if self._proven or self.given_up:
            yield
            return
        async with self._one:
            trial = self._answered and not self._proven
            if trial and not self.given_up:
                await asyncio.sleep(PAUSES[self._trials])
            if not self._proven:
                failed = self._failed
                yield
                # Those that were in flight when the failures began are no trials, nor is a reply from the store.
                if trial and not self._proven and self._failed > failed:
                    self._trials += 1
                    if self._trials == len(PAUSES):
                        self.given_up = self._last
                return
        yield

    def succeeded(self) -> None:
        """Let calls through."""
        self._proven, self._answered, self._failed, self._trials = True, True, 0, 0

    def failed(self, outcome: str, detail: str) -> None:
        """Count a call without a reply, and give the model up after a failure that further calls would meet again.

        outcome, detail: those of a `transport.Failure`.
        """
        if outcome in ("fatal", "throttled"):
            self.given_up = detail
        if outcome == "rejected" and self._answered:
            self.succeeded()  # of this request alone: the service is there
        if outcome != "transient":
            return
        self._failed, self._last = self._failed + 1, detail
        if self._failed >= IN_A_ROW:
            self._proven = False
        if not self._answered and self._failed >= UNPROVEN:
            self.given_up = detail
