"""A provider that takes batches, at half the price: what waits for replies goes out together.

A batch is in the store before it is sent, and owns the claims of its requests: whoever asks for one
of them later, also after a kill, finds the batch and waits for it. Where nobody learned whether a
provider took one, it is looked up by our name for it if the provider lists that; else it is
reported, and only `selfeval store forget-batch` frees its requests.
"""

import asyncio
import contextlib
import json
import time
import uuid
from collections import defaultdict
from typing import Any

from selfeval.providers.budget import Ceiling
from selfeval.providers.endpoint import Call, Endpoint, adapted_parameters, is_refused
from selfeval.providers.leases import BATCH, has_ended, own_name
from selfeval.providers.models import Model
from selfeval.providers.replies import Again, Failure, as_dict, read_reply, redirection
from selfeval.providers.request import Response, canonical, request_key

# requests of a batch, by its provider's `batch`; 200 MB are the most, too
MOST = {
    "inline": 5_000,
    "files": 20_000,
}
POLL = 20.0  # seconds between two looks at what is on its way
FIRST = 2.0  # seconds before the second look; each later wait is twice as long, up to POLL
PASSES = 100  # of the event loop without a new question: nobody has one before replies come
URL = "/v1/chat/completions"
FREE = "`selfeval store forget-batch {}` frees its requests to be sent again"


class Batches(Endpoint):
    """One provider in one event loop that is asked in batches of one model and one form of reply.

    Where the client does not ask in batches, only those that are on their way are waited for.
    """

    def __init__(self, *how):
        super().__init__(*how)
        self._asked: set[str] = set()  # keys that a call has in a batch
        self._waiting: dict[tuple, list[Call]] = defaultdict(list)
        self._running: dict[
            str, asyncio.Task
        ] = {}  # by our name of a batch: what `_follow` returns; "": of `_share`
        self._quiet = 0
        self._claiming = asyncio.Semaphore(1 if self.batch else 10_000)

    def place(self, model: Model):
        """Hold a place in flight; in batches there is one for every call."""
        return contextlib.nullcontext() if self.batch else super().place(model)

    async def close(self) -> None:
        """Leave batches to whoever asks next, and close the HTTP client."""
        for task in self._running.values():
            task.cancel()
        await super().close()

    async def claim(self, call: Call, ceiling: Ceiling | None, amount: float) -> dict | None:
        """Wait until this call is ours to send or in a batch (None), or its reply is stored."""
        # by its twin, whose reply may come tomorrow
        while self.batch and call.key in self._asked:  # noqa: ASYNC110
            await asyncio.sleep(POLL)
        self._asked.add(call.key)
        if ceiling and self.batch and call.model.price is None:
            ceiling.learn(call.model, None)  # nobody knows what a whole batch would cost
        # what is on its way needs no room: its reply makes some for others
        with self.store.read() as store:
            query = "SELECT 1 FROM claims WHERE key = ? AND owner LIKE ?"
            sent = store.execute(query, (call.key, f"{BATCH}%")).fetchone()
        # one at a time asks whether there is room
        async with contextlib.nullcontext() if sent else self._claiming:
            found = await self.store.claim(call.key, ceiling, amount / (1 + self.batch))
        if isinstance(found, dict):
            self._asked.discard(call.key)
            return found
        if found:
            call.batch = self._running.get(found) or asyncio.create_task(
                self._follow(found), name=BATCH + found
            )
            self._running[found] = call.batch
        elif self.batch:
            form = canonical(call.given.get("response_format") or {})
            self._waiting[call.model.id, form].append(call)
            self._quiet, self._running[""] = (
                0,
                self._running.get("") or asyncio.create_task(self._share()),
            )
        return None

    async def ask(self, call: Call) -> Response:
        """Return the reply that a call's batch brought.

        `Again` says that it is to be claimed and sent once more.
        """
        import httpx2

        try:
            if not (call.batch or self.batch):
                return await super().ask(call)
            if not call.batch:
                await asyncio.shield(self._running[""])  # which makes a batch of it
            its_batch: Any = call.batch
            lines, why, cost, refused = await asyncio.shield(its_batch)
        finally:
            self._asked.discard(call.key)
        sent, adapted = adapted_parameters(refused, call.parameters, call.given)
        line = lines.get(request_key(call.key), {})
        try:
            if not (said := as_dict(line.get("response"))):
                raise Failure(
                    "rejected",
                    str(as_dict(line.get("error")).get("message") or line.get("error") or why),
                )
            body = as_dict(said.get("body"))
            if cost and "choices" in body:
                body["usage"] = {"cost": cost} | as_dict(body.get("usage"))
            answer = httpx2.Response(said.get("status_code") or 200, content=json.dumps(body))
            return read_reply(answer, call.model.in_batches(), attempts=1, adapted=adapted)
        except Failure as failure:
            self.store.record_attempt(call.key, failure.outcome, failure.detail)
            if self._adapt(call, sent, failure):
                raise Again("again", failure.detail) from None
            raise

    # a batch, from its calls to its lines

    async def _share(self) -> None:
        """Send what waits once nobody has more to ask, a batch per model and form of reply."""
        while self._quiet < PASSES:
            self._quiet += 1
            await asyncio.sleep(0)
        waiting = self._waiting
        self._waiting = defaultdict(list)
        self._running.pop("")
        for calls in waiting.values():
            calls = [call for call in calls if call.key in self._asked]  # others were interrupted
            for i in range(0, len(calls), most := MOST[str(self.provider.batch)]):
                self._begin(calls[i : i + most])

    def _begin(self, calls: list[Call]) -> None:
        """Make one batch of calls: commit what is about to be sent, then send it."""
        batch = uuid.uuid4().hex[:16]
        model = calls[0].model
        lines = []
        refused = self.known[model.id].refused
        for call in calls:
            sent, _ = adapted_parameters(refused, call.parameters, call.given)
            lines.append({"custom_id": request_key(call.key), "body": call.body(sent)})
        row = (batch, None, model.id, "open", own_name(), time.time(), json.dumps(refused))
        with self.store.change() as store:
            store.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            store.executemany(
                "UPDATE claims SET owner = ? WHERE key = ?", [(BATCH + batch, c.key) for c in calls]
            )
        self._running[batch] = asyncio.create_task(
            self._send(batch, model.api_name, lines), name=BATCH + batch
        )
        for call in calls:
            call.batch = self._running[batch]

    async def _send(
        self, batch: str, model: str, lines: list[dict]
    ) -> tuple[dict, str, float, dict]:
        """Send a batch, and return what `_follow` does."""
        import openai

        sdk = await self._sdk()
        body: dict = {"endpoint": URL, "model": model, "requests": lines}  # in this order
        there = None
        try:
            if self.provider.batch == "files":
                whole = "\n".join(
                    json.dumps(line | {"method": "POST", "url": URL}) for line in lines
                )
                file = await sdk.files.create(file=("batch.jsonl", whole.encode()), purpose="batch")
                body = {"input_file_id": file.id, "endpoint": URL, "completion_window": "24h"}
                body["metadata"] = {"selfeval": batch}
            there = as_dict(await sdk.post("/batches", body=body, cast_to=dict[str, object])).get(
                "id"
            )
        except openai.APIError as error:
            status = getattr(error, "status_code", 408)
            if is_refused(error) or (300 <= status < 500 and status != 408):  # it was not taken
                self.store.forget_batch(batch)
                raise Failure("rejected", _why(error)) from error
        finally:
            with self.store.change() as store:  # nobody is sending it now
                store.execute(
                    "UPDATE batches SET there = ?, owner = '' WHERE id = ?", (there, batch)
                )
        return await self._follow(batch)

    async def _follow(self, batch: str) -> tuple[dict, str, float, dict]:
        """Return the lines of a batch by request, and what is known of the others.

        Waits until the batch has ended, however long that takes. Cost: where the provider says it
        of the whole, else 0.
        """
        import openai

        missed = 0
        wait = min(FIRST, POLL)
        while True:
            with self.store.read() as store:
                query = "SELECT there, state, owner, since, refused FROM batches WHERE id = ?"
                there, state, owner, since, refused = store.execute(query, (batch,)).fetchone()
            # not after the deadline alone: a large file may still be on its way
            lost = has_ended(owner, since)
            if state == "forgotten":
                raise Again("again", f"the batch {batch} was not sent")
            try:
                if lost and not there:
                    there = await self._look_up(batch, since)
                    missed += not there
                if missed > 1:  # what arrived is listed by now
                    self.store.forget_batch(batch)
                if there and (ended := await self._look(there)):
                    return *ended, json.loads(refused)
            except openai.APIError as error:
                status = getattr(error, "status_code", 0)
                if 300 <= status < 400 or status in (401, 403, 404):
                    gone = f"where the batch is gone for good, {FREE.format(batch)}"
                    raise Failure("open", f"{_why(error)}; {gone}") from error
            await asyncio.sleep(wait)
            wait = min(2 * wait, POLL)

    async def _look_up(self, batch: str, since: float) -> str | None:
        """Return the provider's name for a batch that may have been sent.

        None where it lists none of ours.
        """
        if self.provider.batch == "inline":
            lost = (
                f"whether `{self.provider.name}` took the batch {batch} is unknown, since its "
                f"answer was lost"
            )
            raise Failure("open", f"{lost}; look for it there, then {FREE.format(batch)}")
        async for each in (await self._sdk()).batches.list(limit=100):  # the newest first
            if (each.metadata or {}).get("selfeval") == batch:
                return each.id
            if each.created_at < since - 86_400:
                break
        return None

    async def _look(self, there: str) -> tuple[dict, str, float] | None:
        """Return the lines of a batch, why others have none, and what a reply cost.

        None where it has not ended.
        """
        sdk = await self._sdk()
        found = as_dict(await sdk.get(f"/batches/{there}", cast_to=dict[str, object]))
        if (state := found.get("status")) not in ("completed", "failed", "expired", "cancelled"):
            return None
        lines = found.get("results") or []
        for name in ("output_file_id", "error_file_id"):
            if found.get(name):
                file = await sdk.files.content(found[name])
                lines += [json.loads(line) for line in file.content.splitlines()]
        cost = as_dict(found.get("usage")).get("cost")
        replies = as_dict(found.get("request_counts")).get("completed")
        errors = as_dict(found.get("errors")).get("data") or [found.get("error")]
        why = (
            f"the batch {there} ended as {state}: "
            f"{as_dict(errors[0]).get('message') or 'no reply to this request'}"
        )
        return {line["custom_id"]: line for line in lines}, why, (cost or 0) / (replies or 1)

    async def _sdk(self):
        """Return openai's client on our HTTP client."""
        import httpx2
        import openai

        client = await self._connect()
        key = self.provider.read_key()
        if not key:  # the SDK must have one, and it would stand beside that in our headers
            client.event_hooks = {"request": [_without_authorization]}
        url = httpx2.URL(self.provider.url)
        return openai.AsyncOpenAI(
            base_url=str(url.copy_with(query=None)),
            default_query=dict(url.params),
            api_key=key or "none",
            http_client=client,
            timeout=self.provider.deadline,
            max_retries=0,
        )


async def _without_authorization(request) -> None:
    request.headers.pop("Authorization", None)


def _why(error) -> str:
    """Return what an error of the SDK says; of a redirection, where to."""
    if 300 <= getattr(error, "status_code", 0) < 400:
        return redirection(error.response.headers)
    return str(error)
