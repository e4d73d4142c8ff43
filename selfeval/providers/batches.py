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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from selfeval.bounds import MB
from selfeval.errors import is_amount, is_count
from selfeval.providers.budget import Ceiling
from selfeval.providers.endpoint import Call, Endpoint, adapted_parameters, is_refused
from selfeval.providers.leases import BATCH, has_ended, own_name
from selfeval.providers.models import Model
from selfeval.providers.replies import Again, Failure, as_dict, read_body, read_reply
from selfeval.providers.request import Response, canonical, request_key
from selfeval.providers.routes import send

# requests of a batch, by its provider's `batch`; 200 MB are the most, too
MOST = {
    "inline": 5_000,
    "files": 20_000,
}
POLL = 20.0  # seconds between two looks at what is on its way
FIRST = 2.0  # seconds before the second look; each later wait is twice as long, up to POLL
PASSES = 100  # of the event loop without a new question: nobody has one before replies come
URL = "/v1/chat/completions"
ENDED = {"completed", "failed", "expired", "cancelled", "canceled"}
WAITING = {"validating", "queued", "pending", "in_progress", "running", "finalizing", "cancelling"}
PASSING = {408, 409, 425, 429}  # statuses below 500 that another look may not meet
MOST_BYTES = 400 * MB  # of a batch's results, unpacked
FORM = (  # of a file that is sent
    '--{0}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
    '--{0}\r\nContent-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
    "Content-Type: application/jsonl\r\n\r\n{1}\r\n--{0}--\r\n"
)
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
        try:
            if not (call.batch or self.batch):
                return await super().ask(call)
            if not call.batch:
                await asyncio.shield(self._running[""])  # which makes a batch of it
            its_batch: Any = call.batch
            results, refused = await asyncio.shield(its_batch)
        finally:
            self._asked.discard(call.key)
        sent, adapted = adapted_parameters(refused, call.parameters, call.given)
        answer = results.answers.get(request_key(call.key), results.why)
        try:
            if isinstance(answer, str):
                raise Failure("rejected", answer)
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

    async def _send(self, batch: str, model: str, lines: list[dict]) -> tuple["Results", dict]:
        """Send a batch, and return what `_follow` does."""
        there = None
        try:
            there = await self._make(batch, model, lines)
        except Failure as failure:
            status = failure.status or 408
            if is_refused(failure) or (300 <= status < 500 and status != 408):  # it was not taken
                self.store.forget_batch(batch)
                raise Failure("rejected", failure.detail) from failure
        finally:
            with self.store.change() as store:  # nobody is sending it now
                store.execute(
                    "UPDATE batches SET there = ?, owner = '' WHERE id = ?", (there, batch)
                )
        return await self._follow(batch)

    async def _make(self, batch: str, model: str, lines: list[dict]) -> str | None:
        """Make a batch of lines; return the provider's name for it."""
        body: dict = {"endpoint": URL, "model": model, "requests": lines}  # in this order
        if self.provider.batch == "files":
            whole = "\n".join(json.dumps(line | {"method": "POST", "url": URL}) for line in lines)
            form = FORM.format(batch, whole).encode()
            kind = f"multipart/form-data; boundary={batch}"
            file = await self._json("files", content=form, kind=kind)
            body = {"input_file_id": file.get("id"), "endpoint": URL, "completion_window": "24h"}
            body["metadata"] = {"selfeval": batch}
        made = await self._json("batches", content=json.dumps(body).encode())
        return made.get("id")

    async def _follow(self, batch: str) -> tuple["Results", dict]:
        """Return the results of a batch, and the parameters that were left out of it.

        Waits until the batch has ended, however long that takes.
        """
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
                if there and (results := await self._look(there)):
                    return results, json.loads(refused)
            except Failure as failure:
                stays = 300 <= (failure.status or 0) < 500 and failure.status not in PASSING
                if stays or failure.outcome == "open":
                    remedy = f"where no reply of it is to come, {FREE.format(batch)}"
                    raise Failure("open", f"{failure.detail}; {remedy}") from failure
            await asyncio.sleep(wait)
            wait = min(2 * wait, POLL)

    async def _look_up(self, batch: str, since: float) -> str | None:
        """Return the provider's name for a batch that may have been sent.

        None where it lists none of ours.
        """
        if self.provider.batch == "inline":
            lost = f"whether `{self.provider.name}` took the batch {batch} is unknown"
            raise Failure("open", f"{lost}, since its answer was lost; look for it there")
        after = {}
        while True:
            page = await self._json("batches", params={"limit": "100"} | after)
            listed = [as_dict(each) for each in page.get("data") or ()]  # the newest first
            for each in listed:
                if as_dict(each.get("metadata")).get("selfeval") == batch:
                    return each.get("id")
                if each.get("created_at", since) < since - 86_400:
                    return None
            if not (listed and page.get("has_more")):
                return None
            after = {"after": str(listed[-1].get("id"))}

    async def _look(self, there: str) -> "Results | None":
        """Return the results of a batch, None where it has not ended."""
        found = await self._json(f"batches/{there}")
        state = str(found.get("status")).lower()
        if state in WAITING:
            return None
        if state not in ENDED:
            rule = "which is no state that is known here; run this again to look once more"
            raise Failure("open", f"the batch {there} is in the state {state!r:.60}, {rule}")
        lines = found.get("results")
        lines = [*lines] if isinstance(lines, list) else []
        for name in ("output_file_id", "error_file_id"):
            if found.get(name):
                content = await self._get(f"files/{found[name]}/content")
                lines += filter(bytes.strip, content.splitlines())
        errors = as_dict(found.get("errors")).get("data") or [found.get("error")]
        why = as_dict(errors[0]).get("message") or "no reply to this request"
        cost = as_dict(found.get("usage")).get("cost")
        replies = as_dict(found.get("request_counts")).get("completed")
        each = cost / replies if is_amount(cost) and is_count(replies) and replies else 0.0
        return Results.of(lines, f"the batch {there} ended as {state}: {why}", each)

    async def _json(self, path: str, **how) -> dict:
        """Return the object in JSON that the provider answers about files or batches."""
        content = await self._get(path, **how)
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(content), dict):
                return found
        raise Failure("transient", f"an answer about {path} that is no object in JSON")

    async def _get(self, path: str, *, content=None, kind="application/json", params=None) -> bytes:
        """Return what the provider answers about files or batches; content: what is posted.

        Raises `Failure`, with the outcome "open" where the answer has more than `MOST_BYTES`.
        """

        async def exchange(client, url):
            root = url.path.removesuffix("/chat/completions")
            url = url.copy_with(path=f"{root}/{path}").copy_merge_params(params or {})
            method = "GET" if content is None else "POST"
            return await send(client, url, content, method=method, kind=kind, most=MOST_BYTES)

        try:
            answer = await self._exchange(exchange, self.provider.deadline)
        except Failure as failure:
            if failure.outcome == "rejected":  # it is too large
                failure.outcome = "open"
            raise
        if answer.status_code >= 300:
            read_body(answer, self.provider.read_secrets())  # which raises
        return answer.content


@dataclass
class Results:
    """What a batch brought, by the keys of its requests: an answer each, or why there is none.

    why: there is none to those that have no line.
    """

    answers: dict[str, Any]
    why: str

    @classmethod
    def of(cls, lines: Iterable[bytes | dict], why: str, cost: float) -> "Results":
        """Read the lines of a batch; one that is damaged costs its own reply alone.

        cost: dollars of a reply, where the provider says them of the whole.
        """
        answers: dict[str, Any] = {}
        damaged = 0
        for line in lines:
            try:
                key, answer = _read_line(line, cost)
                if isinstance(answers.get(key, ""), str):  # of a doubled line, the one that answers
                    answers[key] = answer
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                damaged += 1
        if damaged:
            why = f"{why}; {damaged} lines of its results cannot be read"
        return cls(answers, why)


def _read_line(line: bytes | dict, cost: float) -> tuple[str, Any]:
    """Return (key of a request, its HTTP response, or why there is none) of a line of results."""
    import httpx2

    fields: Any = json.loads(line) if isinstance(line, bytes) else line
    answer = as_dict(fields.get("response"))
    if not answer:
        error = fields.get("error")
        return fields["custom_id"], str(as_dict(error).get("message") or error or "no reply")
    body = as_dict(answer.get("body"))
    if cost and "choices" in body:
        body["usage"] = {"cost": cost} | as_dict(body.get("usage"))
    status = answer.get("status_code")
    content = json.dumps(body)
    return fields["custom_id"], httpx2.Response(status if is_count(status) else 200, text=content)
