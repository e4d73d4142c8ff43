"""One provider in one event loop: who is asked now, how often, and by which connection."""

import asyncio
import errno
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from selfeval.providers import embedded
from selfeval.providers.addresses import is_here
from selfeval.providers.calls import Call, Experience
from selfeval.providers.models import Provider
from selfeval.providers.replies import EMPTY, VERSION, Failure, NoEndpoint, read_reply
from selfeval.providers.request import Response
from selfeval.providers.routes import post

MAX_PAUSE = 600.0  # seconds; a provider that asks for more is given up for this run


class Endpoint:
    """One provider in one event loop.

    Its HTTP client, and its places in flight. concurrency: calls in flight at most; fewer where the
    registry gives the provider fewer.
    """

    def __init__(self, provider: Provider, concurrency: int):
        self.provider = provider
        self.most = min(concurrency, provider.concurrency)
        self.places = asyncio.Semaphore(self.most)
        # attempts at a time: as many as may be, and as are
        self.limit = float(self.most)
        self.sending = 0
        # refusals in a row, and the end of the pause that they ask for
        self.throttled = 0
        self.open_at = 0.0
        self.known: dict[str, Experience] = defaultdict(Experience)  # by model id
        self._client = self._url = None
        self._connecting = asyncio.Lock()

    # who is next

    def _is_closed(self) -> bool:
        """Tell whether attempts have to wait: for the end of a pause, or for a place."""
        return self.open_at > time.monotonic() or self.sending >= int(self.limit)

    async def _turn(self) -> None:
        """Wait for the turn of one attempt, outside of pauses."""
        while self._is_closed():
            pause = self.open_at - time.monotonic()
            await asyncio.sleep(max(pause, 0) + 0.02)
        self.sending += 1

    def _slow_down(self, failure: Failure) -> None:
        """Pause for everybody where a provider asks for it.

        Until its time, or for a growing while if it named none.
        """
        wait = failure.wait
        now = time.monotonic()
        if (wait or 0) > MAX_PAUSE:
            failure.outcome = "fatal"
            failure.detail += f"; it asks to wait {wait:.0f} s"
        if failure.outcome == "throttled":
            if now >= self.open_at:  # the first of a volley; the others were sent before we knew
                self.throttled += 1
                self.limit = max(1.0, min(self.limit, self.sending) / 2)
            if not wait:  # 0 is no time that was named: it would end the call within a second
                wait = min(60.0, 2.0 ** min(self.throttled - 1, 6)) * random.uniform(1, 1.5)
            self.open_at = max(self.open_at, now + wait)

    async def send(self, call: Call) -> Response:
        """Wait for a call's turn, send it once, and read the reply; raise `Failure` without one."""
        self.known[call.model.id].prepare(call)
        await self._turn()
        call.attempts += 1
        left = self.provider.deadline - call.seconds
        started = time.monotonic()
        try:
            # Half of the time for the first attempt: a hung connection leaves room for a second
            # one.
            seconds = left / 2 if call.attempts == 1 else left
            answer = await self.exchange(partial(post, body=call.body()), seconds)
            latency = round(time.monotonic() - started, 3)
            response = read_reply(
                answer, call.model, latency=latency, attempts=call.attempts, adapted=call.adapted
            )
        except Failure as failure:
            self._say_remedy(failure)
            self._slow_down(failure)
            call.seconds += time.monotonic() - started
            raise
        finally:
            self.sending -= 1
        self.throttled = 0
        self.limit = min(self.most, self.limit + 1 / self.limit)
        self.known[call.model.id].succeed(call)
        return response

    def _say_remedy(self, failure: Failure) -> None:
        """Say what to correct where the address or the key is wrong.

        What did answer before may heal. A proxy's page about one text (400) is about that text,
        once other texts were answered.
        """
        if isinstance(failure, NoEndpoint) and any(known.answered for known in self.known.values()):
            is_about_text = failure.is_stream or failure.status in (400, 405)
            failure.outcome = "rejected" if is_about_text else "transient"
            return
        if self.provider.embedded or failure.outcome != "fatal":
            return
        is_versioned = VERSION.search(self.provider.address)
        is_no_route = failure.status == 404 and not (is_versioned and failure.from_api)
        if failure.status in (401, 403) and not EMPTY.search(failure.detail):
            remedy = self._about_key()
        elif isinstance(failure, NoEndpoint) or is_no_route:
            remedy = self._about_address()
        else:
            return
        failure.detail = f"{failure.detail.rstrip('.')}; {remedy}"

    def _about_key(self) -> str:
        """Say which key was sent, or where to name one."""
        if name := self.provider.key_variable:
            return f"the key is that of {name}"
        if self.provider.keys:
            return f"no key was sent: set {' or '.join(self.provider.keys)}"
        return (
            f"no key was sent: name the variable that has it under `keys` of the provider "
            f"{self.provider.name!r}"
        )

    def _about_address(self) -> str:
        """Say where the address comes from, and what most addresses have."""
        provider = self.provider
        name = (
            f"{provider.base_url_env} (its `base_url`)"
            if provider.base_url_env
            else "its `base_url`"
        )
        remedy = f"correct {name}, which is {provider.address}"
        if VERSION.search(provider.address):
            return remedy
        return f"{remedy}; most servers want /v1 at its end"

    async def exchange(self, exchange: Callable[[Any, Any], Awaitable], seconds: float):
        """Return what an exchange with the provider brings, by our HTTP client and its URL."""
        client = await self.connect()
        try:
            async with asyncio.timeout(seconds):
                return await exchange(client, self._url)
        except Failure:
            raise
        except TimeoutError as error:
            raise Failure("transient", f"no complete reply within {seconds:.0f} s") from error
        # of openai's client, aiohttp, the sockets, or of a broken answer in any of them
        except Exception as error:
            if self.provider.embedded and client is self._client:
                await self.close()  # it may have gone for idleness: find or start it anew
            if is_here(self.provider.address) and is_refused(error):
                where = self.provider.base_url_env or "its `base_url`"
                detail = (
                    f"nothing answers at {self.provider.address}; start the server, or correct "
                    f"{where}"
                )
                raise Failure("fatal", detail) from error
            raise Failure("transient", f"connection failed: {error.__cause__ or error}") from error

    async def connect(self):
        """Return the HTTP client.

        The SDK's own, without its layer that builds every request's headers anew.
        """
        import httpx2
        import openai

        async with self._connecting:
            if self._client is None:
                url = self.provider.url
                key = self.provider.read_key()
                if self.provider.embedded:
                    url = await asyncio.to_thread(embedded.url, self.provider)
                    key = embedded.key(self.provider)
                base = httpx2.URL(url)  # Azure's has a query, ?api-version=...
                self._url = base.copy_with(path=f"{base.path.rstrip('/')}/chat/completions")
                headers = {
                    "Content-Type": "application/json",
                    "User-Agent": "selfeval",
                    "Accept-Encoding": "gzip",
                }
                if key:
                    headers["Authorization"] = f"Bearer {key}"
                self._client = openai.DefaultAioHttpClient(
                    headers=headers | self.provider.read_headers(),
                    limits=httpx2.Limits(
                        max_connections=self.most, max_keepalive_connections=self.most
                    ),
                    timeout=None,
                    follow_redirects=False,  # nobody but the address in use gets prompts
                    trust_env=not is_here(url),  # no proxy between us and our own server
                )
            return self._client

    async def close(self) -> None:
        """Close the HTTP client."""
        client = self._client
        self._client = None
        if client:
            await client.aclose()


def is_refused(error: BaseException | None) -> bool:
    """Tell whether nobody listened at an address."""
    while error and getattr(error, "errno", None) != errno.ECONNREFUSED:
        error = error.__cause__
    return error is not None
