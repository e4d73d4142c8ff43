"""One HTTP call that ends: every outcome classified, one gate per provider, a deadline, every attempt counted.

The OpenAI SDK returns HTTP 200 with an error body, HTML or broken JSON as if it were a reply, and retries each call by
itself, so that a rate limit turns into a storm. Here its retries are off, the raw body is read, and all callers of a
provider wait together until the time that the provider named.
"""

import asyncio
import email.utils
import json
import math
import random
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from selfeval.asking.sharing import Pace

MAX_ATTEMPTS = 6  # transient failures of one call
MAX_THROTTLED = 10  # rate-limit answers to one call
NO_USE = re.compile("not a valid model|invalid model|api key not valid", re.I)  # OpenRouter and Gemini say it by a 400
DIGITS = 300  # of a whole number; longer ones are none that a reply needs, and Python refuses to read the longest
MAX_PAUSE = 600.0  # seconds; a provider that asks for more is given up for this run


def _finite(text: str) -> float | None:
    return value if math.isfinite(value := float(text)) else None


# A number that no file can hold (NaN, Infinity, 1e999) is read as null: it costs one field, not the reply around it.
DECODER = json.JSONDecoder(
    parse_constant=lambda name: None,
    parse_float=_finite,
    parse_int=lambda text: int(text) if len(text) < DIGITS else None,
)


class Failure(Exception):
    """An attempt that brought no reply. outcome: `transient`, `throttled`, `rejected` (this request), `fatal`, or
    `given_up` (nothing was sent, the model had failed before)."""

    def __init__(self, outcome: str, detail: str, wait: float | None = None):
        super().__init__()
        self.outcome, self.detail, self.wait = outcome, detail, wait

    def __str__(self) -> str:
        return self.detail


class Gate:
    """Bound the calls in flight to one provider and hold all of them back while it is throttling."""

    def __init__(self, limit: int, pace: Pace | None = None):
        self.most, self.limit, self.pace = limit, float(limit), pace
        self.in_flight, self.throttled, self.open_at = 0, 0, 0.0
        self._waiting: deque[asyncio.Future] = deque()

    async def enter(self, tokens: int = 0) -> None:
        """Wait for a place in flight, for the end of a pause, and until the rates allow so many tokens more."""
        await self._take_place()
        while self.pace:
            try:
                await self.pace.wait(tokens)
            except BaseException:
                self.leave()
                raise
            if self.open_at <= time.monotonic():
                return
            self.leave()  # closed in the meantime
            self.settle(-tokens)
            await self._take_place()

    def settle(self, tokens: int) -> None:
        """Correct what was counted against the rate of tokens by so many."""
        if self.pace:
            self.pace.settle(tokens)

    async def _take_place(self) -> None:
        try:
            while (pause := self.open_at - time.monotonic()) > 0 or self.in_flight >= int(self.limit):
                if pause > 0:
                    await asyncio.sleep(pause)
                else:
                    waiter = asyncio.get_running_loop().create_future()
                    self._waiting.append(waiter)
                    await waiter
        except asyncio.CancelledError:
            self._wake()  # a place offered to us goes to the next
            raise
        self.in_flight += 1

    def leave(self) -> None:
        """Free a place in flight."""
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def succeeded(self) -> None:
        """Open a little further after a reply."""
        self.throttled = 0
        if self.limit < self.most:
            self.limit = min(self.most, self.limit + 1 / self.limit)
            self._wake()

    def throttle(self, wait: float | None) -> None:
        """Close until the provider's time, or for a growing while if it named none, and halve the calls in flight."""
        now = time.monotonic()
        if now >= self.open_at:  # the first of a volley; the others were sent before we knew
            self.throttled += 1
            self.limit = max(1.0, self.limit / 2)
        if wait is None:
            wait = min(60.0, 2.0 ** min(self.throttled - 1, 6)) * random.uniform(1, 1.5)
        self.open_at = max(self.open_at, now + wait)


@dataclass
class Reply:
    """A raw body that holds a choice, with the number of HTTP attempts and the last one's seconds."""

    body: dict
    request_id: str | None
    attempts: int
    latency: float


async def call(
    send: Callable[[], Awaitable],
    gate: Gate,
    deadline: float,
    note: Callable[[Failure], None] = lambda failure: None,
    tokens: int = 0,
) -> Reply:
    """Send until there is a reply, or raise the last `Failure`.

    send: makes one HTTP attempt and returns its response. deadline: seconds that attempts and back-off may take in all
    (a pause that the provider asked for, or that its rates need, does not count). note: told of every failed attempt.
    tokens: what an attempt counts against the provider's rate until its reply tells more.
    """
    spent, attempts, throttled, transient = 0.0, 0, 0, 0
    while True:
        await gate.enter(tokens)
        attempts += 1
        started = time.monotonic()
        try:
            # Half of the time for the first attempt: a hung connection leaves room for a second one.
            async with asyncio.timeout((deadline - spent) / (2 if attempts == 1 else 1)):
                response = await send()
            body = read_body(response)
        except TimeoutError:
            failure = Failure("transient", f"no complete reply within {time.monotonic() - started:.0f} s")
        except Failure as error:
            if error.outcome == "given_up":
                raise
            failure = error
        else:
            gate.succeeded()
            return Reply(body, response.headers.get("x-request-id"), attempts, time.monotonic() - started)
        finally:
            gate.leave()
        gate.settle(-tokens)
        note(failure)
        spent += time.monotonic() - started
        if failure.outcome == "throttled":
            throttled += 1
            if (failure.wait or 0) > MAX_PAUSE:
                raise Failure("fatal", f"{failure.detail}; it asks to wait {failure.wait:.0f} s")
            gate.throttle(failure.wait)
        elif failure.outcome == "transient":
            transient += 1
            pause = min(30.0, 0.5 * 2 ** (transient - 1)) * random.uniform(0.5, 1)
            if transient < MAX_ATTEMPTS and spent + pause < deadline:
                await asyncio.sleep(pause)
                spent += pause
        if (
            failure.outcome in ("fatal", "rejected")
            or throttled >= MAX_THROTTLED
            or transient >= MAX_ATTEMPTS
            or spent >= deadline
        ):
            raise Failure(failure.outcome, f"{failure.detail} (after {attempts} attempt{'s' * (attempts > 1)})")


def read_body(response) -> dict:
    """Return the parsed body of an HTTP response that holds a choice; raise a classified `Failure` for any other."""
    try:
        body = DECODER.decode(response.content.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # also UnicodeDecodeError
        body = None
    status = response.status_code
    if isinstance(body, list) and len(body) == 1:  # Gemini wraps its errors in a list
        body = body[0]
    error = body.get("error") if isinstance(body, dict) else None
    if status == 200 and error is None:
        return _with_choice(body)
    error = error if isinstance(error, dict) else {"message": error or response.text[:200]}
    if status == 200:  # an error that travels as a success carries its own number
        status = int(error["code"]) if str(error.get("code", "")).isdigit() else 502
    raise classify(status, error, response.headers)


def _with_choice(body) -> dict:
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list | None):
        raise Failure("transient", "HTTP 200 without a choice")
    if choice.get("finish_reason") == "error" or choice.get("error"):
        raise Failure("transient", f"the model's server failed while answering: {choice.get('error') or 'no details'}")
    return body


def classify(status: int, error: dict, headers) -> Failure:
    """Return what an error answer means for this call: wait, try again, give up the request, or give up the model."""
    message = f"HTTP {status}: {error.get('message') or error.get('code') or 'no message'}"
    code = f"{error.get('code')} {error.get('type')}"
    if status == 429 and ("insufficient_quota" in code or "billing" in code):
        return Failure("fatal", message)
    wait = retry_after(headers, error)
    if status == 429 or (status in (503, 529) and wait is not None):
        return Failure("throttled", message, wait)
    if status == 403 and isinstance(error.get("metadata"), dict) and "reasons" in error["metadata"]:
        return Failure("rejected", message)  # OpenRouter's moderation: about this text, not about the account
    if status in (401, 402, 403, 404) or (status == 400 and NO_USE.search(message)):
        return Failure("fatal", message)
    if 400 <= status < 500 and status not in (408, 409, 425):
        return Failure("rejected", message)
    return Failure("transient", message)


def retry_after(headers, error: dict) -> float | None:
    """Return the seconds a provider asks to wait, from its headers or its body, or None.

    Forms: `retry-after-ms`, `retry-after` in seconds or as a date, and OpenRouter's reset time (milliseconds since the
    epoch) inside the error's metadata.
    """
    after = headers.get("retry-after")
    try:
        reset = ((error.get("metadata") or {}).get("headers") or {}).get("X-RateLimit-Reset")
        if headers.get("retry-after-ms"):
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if after and after.replace(".", "", 1).isdigit():
            return float(after)
        if after:
            return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
        if reset:
            return max(0.0, float(reset) / 1000 - time.time())
    except (TypeError, ValueError, AttributeError):
        pass  # an unreadable time is the same as none
    return None
