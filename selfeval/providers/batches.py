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
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from selfeval.bounds import MB
from selfeval.errors import InputError, is_amount, is_count
from selfeval.providers.askers import Account, Paid
from selfeval.providers.calls import Call
from selfeval.providers.endpoint import is_refused
from selfeval.providers.leases import BATCH, has_ended, own_name
from selfeval.providers.models import Model, Provider
from selfeval.providers.replies import Again, Failure, as_dict, read_body, read_reply
from selfeval.providers.request import Request, Response, canonical, request_key
from selfeval.providers.routes import Answer, send
from selfeval.providers.store import Store

# requests of a batch, by its provider's `batch`; 200 MB are the most, too
MOST = {
    "inline": 5_000,
    "files": 20_000,
}
# `there`: the provider's name for a batch, whose requests are the claims that it owns; refused:
# parameters left out
TABLE = """CREATE TABLE IF NOT EXISTS batches
    (id TEXT PRIMARY KEY, there, model TEXT, state TEXT, owner TEXT, since REAL, refused)"""
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


class Batched(Paid):
    """Buys the replies of one provider in batches of one model and one form of reply.

    sends: whether what is not on its way goes out in batches; else it is asked one by one, and only
    the batches of others are waited for.
    """

    def __init__(self, provider: Provider, account: Account, *, sends: bool):
        super().__init__(provider, account)
        self.sends = sends
        self._waiting: dict[tuple, list[Call]] = defaultdict(list)
        self._sharing: asyncio.Task | None = None  # of `_share`
        self._running: dict[str, asyncio.Task] = {}  # by the owner of the claims: of `_follow`
        self._quiet = 0
        self._claiming = asyncio.Lock()
        self._twins: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # of equal requests

    async def close(self) -> None:
        """Leave batches to whoever asks next, and close connections."""
        for task in self._running.values():
            task.cancel()
        if self._sharing:
            self._sharing.cancel()
        await super().close()

    async def ask(self, request: Request) -> Response:
        """Return the reply to a request; of equal ones the first goes out."""
        if not self.sends:
            return await super().ask(request)
        async with self._twins[request.key]:
            return await super().ask(request)

    def _place(self, model: Model):
        """Hold a place in flight; in batches there is one for every call."""
        return contextlib.nullcontext() if self.sends else super()._place(model)

    async def _lease(self, call: Call) -> Response | None:
        """Wait until this call is ours to send or in a batch (None), or its reply is stored."""
        if not self.sends:
            return await super()._lease(call)
        call.amount /= 2
        ceiling = self.account.ceiling
        if ceiling and call.model.price is None:
            ceiling.learn(call.model, None)  # nobody knows what a whole batch would cost
        # what is on its way needs no room: its reply makes some for others
        with self.store.read() as store:
            query = "SELECT 1 FROM claims WHERE key = ? AND owner LIKE ?"
            is_sent = store.execute(query, (call.key, f"{BATCH}%")).fetchone()
        # one call at a time asks whether there is room
        async with contextlib.nullcontext() if is_sent else self._claiming:
            return await super()._lease(call)

    async def _send(self, call: Call) -> Response:
        """Return the reply that a call's batch brought.

        `Again` says that it is to be claimed and sent once more.
        """
        if call.owner == own_name():
            if not self.sends:
                return await super()._send(call)
            await self._go_out(call)
        if call.owner not in self._running:
            self._run(call.owner, self._follow(call.owner))
        results, refused = await asyncio.shield(self._running[call.owner])
        call.leave_out(refused)
        answer = results.answers.get(request_key(call.key), results.why)
        try:
            if isinstance(answer, str):
                raise Failure("rejected", answer)
            return read_reply(answer, call.model.in_batches(), attempts=1, adapted=call.adapted)
        except Failure as failure:
            self.store.record_attempt(call.key, failure.outcome, failure.detail)
            if self.known[call.model.id].adapt(call, failure):
                raise Again("again", failure.detail) from None
            raise

    async def _go_out(self, call: Call) -> None:
        """Wait until a call is in a batch, with all that waits then."""
        form = canonical(call.given.get("response_format") or {})
        waiting = self._waiting[call.model.id, form]
        waiting.append(call)
        self._quiet = 0
        self._sharing = self._sharing or asyncio.create_task(self._share())
        try:
            await asyncio.shield(self._sharing)
        except asyncio.CancelledError:
            if call.owner == own_name():
                waiting.remove(call)
            raise

    # a batch, from its calls to its lines

    async def _share(self) -> None:
        """Send what waits once nobody has more to ask, a batch per model and form of reply."""
        while self._quiet < PASSES:
            self._quiet += 1
            await asyncio.sleep(0)
        waiting = self._waiting
        self._waiting = defaultdict(list)
        self._sharing = None
        most = MOST[str(self.provider.batch)]
        for calls in waiting.values():
            for i in range(0, len(calls), most):
                self._begin(calls[i : i + most])

    def _begin(self, calls: list[Call]) -> None:
        """Make one batch of calls: commit what is about to be sent, then send it."""
        batch = uuid.uuid4().hex[:16]
        owner = BATCH + batch
        model = calls[0].model
        refused = dict(self.known[model.id].refused)
        lines = []
        for call in calls:
            call.leave_out(refused)
            lines.append({"custom_id": request_key(call.key), "body": call.body()})
        row = (batch, None, model.id, "open", own_name(), time.time(), json.dumps(refused))
        with self.store.change() as store:
            store.execute(TABLE)
            store.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            query = "UPDATE claims SET owner = ? WHERE key = ?"
            store.executemany(query, [(owner, call.key) for call in calls])
        for call in calls:
            call.owner = owner
        self._run(owner, self._send_all(batch, model.api_name, lines))

    def _run(self, owner: str, following: Coroutine) -> None:
        self._running[owner] = asyncio.create_task(following)

    async def _send_all(self, batch: str, model: str, lines: list[dict]) -> tuple["Results", dict]:
        """Send a batch, and return what `_follow` does."""
        there = None
        try:
            there = await self._make(batch, model, lines)
        except Failure as failure:
            status = failure.status or 408
            if is_refused(failure) or (300 <= status < 500 and status != 408):  # it was not taken
                forget(self.store, batch)
                raise Failure("rejected", failure.detail) from failure
        finally:
            with self.store.change() as store:  # nobody is sending it now
                store.execute(
                    "UPDATE batches SET there = ?, owner = '' WHERE id = ?", (there, batch)
                )
        return await self._follow(BATCH + batch)

    async def _make(self, batch: str, model: str, lines: list[dict]) -> str | None:
        """Make a batch of lines; return the provider's name for it."""
        body: dict = {"endpoint": URL, "model": model, "requests": lines}  # in this order
        if self.provider.batch == "files":
            whole = "\n".join(json.dumps(line | {"method": "POST", "url": URL}) for line in lines)
            form = FORM.format(batch, whole).encode()
            kind = {"Content-Type": f"multipart/form-data; boundary={batch}"}
            file = await self._json("files", content=form, headers=kind)
            body = {"input_file_id": file.get("id"), "endpoint": URL, "completion_window": "24h"}
            body["metadata"] = {"selfeval": batch}
        made = await self._json("batches", content=json.dumps(body).encode())
        return made.get("id")

    async def _follow(self, owner: str) -> tuple["Results", dict]:
        """Return the results of the batch that owns claims, and the parameters left out of it.

        Waits until the batch has ended, however long that takes.
        """
        batch = owner.removeprefix(BATCH)
        missed = 0
        wait = min(FIRST, POLL)
        while True:
            with self.store.change() as store:
                store.execute(TABLE)
                query = "SELECT there, state, owner, since, refused FROM batches WHERE id = ?"
                row = store.execute(query, (batch,)).fetchone()
            if row is None:
                raise Failure("open", f"the store has lost its batch {batch}; {FREE.format(batch)}")
            there, state, owner, since, refused = row
            # not after the deadline alone: a large file may still be on its way
            lost = has_ended(owner, since)
            if state == "forgotten":
                raise Again("again", f"the batch {batch} was not sent")
            try:
                if lost and not there:
                    there = await self._look_up(batch, since)
                    missed += not there
                if missed > 1:  # what arrived is listed by now
                    forget(self.store, batch)
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

    async def _get(self, path: str, *, content=None, headers=None, params=None) -> bytes:
        """Return what the provider answers about files or batches; content: what is posted.

        Raises `Failure`, with the outcome "open" where the answer has more than `MOST_BYTES`.
        """

        async def exchange(client, url):
            root = url.path.removesuffix("/chat/completions")
            url = url.copy_with(path=f"{root}/{path}").copy_merge_params(params or {})
            method = "GET" if content is None else "POST"
            return await send(client, url, content, method=method, headers=headers, most=MOST_BYTES)

        try:
            answer = await self.endpoint.exchange(exchange, self.provider.deadline)
        except Failure as failure:
            if failure.outcome == "rejected":  # it is too large
                failure.outcome = "open"
            raise
        if answer.status_code >= 300:
            read_body(answer, self.provider.read_secrets())  # which raises
        return answer.content


def forget(store: Store, batch: str) -> int:
    """Free the requests of a batch to be sent again.

    Returns how many. Raises `InputError` for an unknown one.
    """
    with store.change() as connection:
        connection.execute(TABLE)
        query = "UPDATE batches SET state = 'forgotten' WHERE id = ?"
        known = connection.execute(query, (batch,)).rowcount
        query = "DELETE FROM claims WHERE owner = ?"
        freed = connection.execute(query, (BATCH + batch,)).rowcount
        if not known and not freed:
            rule = f"The store has no batch {batch!r}"
            raise InputError(f"{rule}; the error of a request names its batch.")
        return freed


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
    fields: Any = json.loads(line) if isinstance(line, bytes) else line
    answer = as_dict(fields.get("response"))
    if not answer:
        error = fields.get("error")
        return fields["custom_id"], str(as_dict(error).get("message") or error or "no reply")
    body = as_dict(answer.get("body"))
    if cost and "choices" in body:
        body["usage"] = {"cost": cost} | as_dict(body.get("usage"))
    status: Any = answer.get("status_code")
    content = json.dumps(body).encode()
    return fields["custom_id"], Answer(status if is_count(status) else 200, content)
