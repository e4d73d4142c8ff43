"""A provider that takes batches, at half the price: what waits for replies goes out together.

A batch is in the store before it is sent, and owns the claims of its requests: whoever asks for one of them later, also
after a kill, finds the batch and waits for it. Where nobody learned whether a provider took one, it is looked up by our
name for it if the provider lists that; else it is reported, and only `selfeval store forget-batch` frees its requests.
"""

import asyncio
import contextlib
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from weakref import WeakValueDictionary

from selfeval.asking.endpoint import Again, Call, Endpoint, Failure, adapted_parameters, as_dict, classify, read_reply
from selfeval.asking.request import Response, canonical, request_key
from selfeval.asking.store import BATCH, Ceiling, has_ended, own_name
from selfeval.errors import InputError, is_amount
from selfeval.models import Model

MOST = {"inline": 5_000, "files": 50_000}  # requests of a batch, by its provider's `batch`
LARGEST = 190_000_000  # bytes of a batch: providers take 200 MB
POLL = 20.0  # seconds between two looks at what is on its way
PASSES = 100  # of the event loop without a new question: nobody has one before replies come
URL = "/v1/chat/completions"
PATIENT = ("transient", "throttled", "unsent")  # failures of a look, after which there is another


def require(model: Model) -> None:
    """Raise `InputError` where a model's provider takes no batches; those that are computed here need none."""
    provider = model.provider
    if not (model.call or provider.batch or provider.embedded or provider.name == "sim"):
        has = f"the provider `{provider.name}` of {model.id!r} has no `batch` in data/models.yaml"
        raise InputError(f"`batch` cannot be used, since {has}; leave out `batch`, or this model.")


class Batches(Endpoint):
    """One provider in one event loop that is asked in batches of one model and one form of reply.

    Where the client does not ask in batches, only the replies of those on their way are waited for.
    """

    def __init__(self, *how):
        super().__init__(*how)
        self._calls: WeakValueDictionary[str, Call] = WeakValueDictionary()  # by key, as long as they are made
        self._waiting: dict[tuple, list[Call]] = defaultdict(list)
        self._running: dict[str, asyncio.Task] = {}  # by our name of a batch: what `_follow` returns
        self._quiet, self._sharing, self._claiming = 0, None, asyncio.Lock()

    def place(self, model: Model):
        """Hold a place in flight; in batches there is one for every call."""
        return contextlib.nullcontext() if self.batch else super().place(model)

    async def close(self) -> None:
        """Leave batches to whoever asks next, and close the HTTP client."""
        for task in self._running.values():
            task.cancel()
        await super().close()

    async def claim(self, call: Call, ceiling: Ceiling | None, amount: float) -> dict | None:
        """Wait until this call is ours to send or a batch has it (None), or its reply is stored (the reply)."""
        while self.batch and call.key in self._calls:  # noqa: ASYNC110  its twin, whose reply may come tomorrow
            await asyncio.sleep(POLL)
        self._calls[call.key] = call
        if ceiling and self.batch and call.model.price is None:
            ceiling.learn(call.model, None)  # nobody knows what a whole batch would cost
        async with self._claiming if self.batch else contextlib.nullcontext():  # one asks whether there is room
            found = await self.store.claim(call.key, ceiling, amount / (1 + self.batch))
        if isinstance(found, str):
            call.batch = self._running.get(found) or asyncio.create_task(self._follow(found))
            self._running[found] = call.batch
        elif found is None and self.batch:
            self._waiting[call.model.id, canonical(call.given.get("response_format"))].append(call)
            self._quiet, self._sharing = 0, self._sharing or asyncio.create_task(self._share())
        return found if isinstance(found, dict) else None

    async def ask(self, call: Call) -> Response:
        """Return the reply that a call's batch brought; `Again` says that it is to be claimed and sent once more."""
        import httpx2

        if not call.batch and not self.batch:
            return await super().ask(call)
        if not call.batch:
            await asyncio.wait([sharing := self._sharing])
            sharing.result()
        await asyncio.wait([call.batch])
        lines, why, refused = call.batch.result()
        sent, adapted = adapted_parameters(refused, call.parameters, call.given)
        line = lines.get(request_key(call.key), {})
        try:
            if not (said := as_dict(line.get("response"))):
                raise Failure("rejected", str(as_dict(line.get("error")).get("message") or line.get("error") or why))
            answer = httpx2.Response(said.get("status_code") or 200, content=json.dumps(said.get("body")))
            return read_reply(answer, call.model.in_batches(), attempts=1, adapted=adapted)
        except Failure as failure:
            self.store.record_attempt(call.key, failure.outcome, failure.detail)
            if self._adapt(call, sent, failure):
                raise Again("again", failure.detail) from None
            raise

    # a batch, from its calls to its lines -----------------------------------------------------------------------------

    async def _share(self) -> None:
        """Send what waits once nobody has more to ask, in batches of one model and one form of reply."""
        while self._quiet < PASSES:
            self._quiet += 1
            await asyncio.sleep(0)
        waiting, self._waiting, self._sharing = self._waiting, defaultdict(list), None
        for calls in waiting.values():
            refused = dict(self.known[calls[0].model.id].refused)
            sent = [adapted_parameters(refused, call.parameters, call.given)[0] for call in calls]
            bodies = [call.body(parameters) for call, parameters in zip(calls, sent, strict=True)]
            most = min(MOST[self.provider.batch], LARGEST // max(len(json.dumps(body)) + 200 for body in bodies))
            for i in range(0, len(calls), most):
                self._begin(calls[i : i + most], bodies[i : i + most], refused)

    def _begin(self, calls: list[Call], bodies: list[dict], refused: dict) -> None:
        """Make one batch of calls: commit what is about to be sent, then send it."""
        batch, model, now = uuid.uuid4().hex[:16], calls[0].model, time.time()
        row = (batch, None, self.provider.name, model.id, "sending", own_name(), now, json.dumps(refused))
        with self.store.change() as store:
            store.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            owners = [(BATCH + batch, call.key) for call in calls]
            store.executemany("UPDATE claims SET owner = ? WHERE key = ?", owners)
        lines = [{"custom_id": request_key(call.key), "body": body} for call, body in zip(calls, bodies, strict=True)]
        self._running[batch] = asyncio.create_task(self._send(batch, model.api_name, lines))
        for call in calls:
            call.batch = self._running[batch]

    async def _send(self, batch: str, model: str, lines: list[dict]) -> tuple[dict, str, dict]:
        """Send a batch, and return what `_follow` does."""
        sdk, body = await self._sdk(), {"endpoint": URL, "model": model, "requests": lines}  # in this order
        try:
            with _in_words():
                if self.provider.batch == "files":
                    whole = "\n".join(json.dumps(line | {"method": "POST", "url": URL}) for line in lines).encode()
                    file = await sdk.files.create(file=("batch.jsonl", whole), purpose="batch")
                    body = {"input_file_id": file.id, "endpoint": URL, "completion_window": "24h"}
                    body["metadata"] = {"selfeval": batch}
                there = (await sdk.post("/batches", body=body, cast_to=dict[str, object]))["id"]
            self._note(batch, there, "sent")
        except Failure as failure:
            if failure.outcome != "transient":  # it did not arrive
                self.store.forget_batch(batch)
                if failure.outcome != "throttled":
                    raise
                await asyncio.sleep(failure.wait or POLL)
        return await self._follow(batch, lost=True)

    async def _follow(self, batch: str, lost: bool = False) -> tuple[dict, str, dict]:
        """Return the lines of a batch by request, why others have none, and the parameters that were refused before.

        Waits until the batch has ended, however long that takes. lost: whether nobody is sending it now.
        """
        looks = 0
        while True:
            with self.store.read() as store:
                query = "SELECT there, state, owner, since, refused FROM batches WHERE id = ?"
                there, state, owner, since, refused = store.execute(query, (batch,)).fetchone()
            if state == "forgotten":
                raise Again("again", f"the batch {batch} was not sent")
            try:
                with _in_words():
                    if not there and (lost or has_ended(owner, since) or time.time() > since + self.provider.deadline):
                        there, looks = await self._look_up(batch, since), looks + 1
                        if not there and looks > 1:
                            self.store.forget_batch(batch)
                    if there and (ended := await self._look(there)):
                        self._note(batch, there, ended[2])
                        return *ended[:2], json.loads(refused)
            except Failure as failure:
                if failure.outcome not in PATIENT:
                    raise Failure("open", failure.detail) from None
            await asyncio.sleep(POLL)

    async def _look_up(self, batch: str, since: float) -> str | None:
        """Return the provider's name for a batch that may have been sent; None where it lists none of ours."""
        if self.provider.batch == "inline":
            raise Failure(
                "open",
                f"whether `{self.provider.name}` took the batch {batch} is unknown, since its answer was lost; look "
                f"for it there, then `selfeval store forget-batch {batch}` frees its requests to be sent again",
            )
        async for each in (await self._sdk()).batches.list(limit=100):  # the newest first
            if (each.metadata or {}).get("selfeval") == batch:
                return each.id
            if each.created_at < since - 86_400:
                break
        return None

    async def _look(self, there: str) -> tuple[dict, str, str] | None:
        """Return the lines of a batch, why others have none, and how it ended; None where it has not."""
        sdk = await self._sdk()
        found = await sdk.get(f"/batches/{there}", cast_to=dict[str, object])
        if (state := found.get("status")) not in ("completed", "failed", "expired", "cancelled"):
            return None
        lines = found.get("results") or []
        for name in ("output_file_id", "error_file_id"):
            if found.get(name):
                lines += map(json.loads, (await sdk.files.content(found[name])).content.splitlines())
        _share_cost(lines, as_dict(found.get("usage")).get("cost"))
        errors = as_dict(found.get("errors")).get("data") or [found.get("error")]
        why = f"the batch {there} ended as {state}: {as_dict(errors[0]).get('message') or 'no reply to this request'}"
        return {line["custom_id"]: line for line in lines}, why, state

    def _note(self, batch: str, there: str, state: str) -> None:
        with self.store.change() as store:
            store.execute("UPDATE batches SET there = ?, state = ? WHERE id = ?", (there, state, batch))

    async def _sdk(self):
        import openai

        how = {"base_url": self.provider.url, "timeout": self.provider.deadline, "max_retries": 0}
        return openai.AsyncOpenAI(api_key=self.provider.key or "none", http_client=await self._connect(), **how)


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Make a `Failure` of what the SDK raises; `unsent` where nothing can have arrived."""
    import httpx2
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        said = error.body if isinstance(error.body, dict) else {"message": error.message}
        raise classify(error.status_code, said, error.response.headers) from error
    except (openai.OpenAIError, ValueError, KeyError, TypeError) as error:
        unsent = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
        detail = f"connection failed: {error.__cause__ or error}"
        raise Failure("unsent" if unsent else "transient", detail) from error


def _share_cost(lines: list[dict], cost) -> None:
    """Share what a whole batch cost among its replies, where they do not say it themselves."""
    bodies = [as_dict(as_dict(line.get("response")).get("body")) for line in lines]
    usages = [body.setdefault("usage", {}) for body in bodies if body.get("choices")]
    for usage in usages if is_amount(cost) else ():
        usage.setdefault("cost", cost / len(usages))
