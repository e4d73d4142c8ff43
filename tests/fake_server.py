"""Serve OpenAI-compatible chat completions on loopback, on time or with scripted faults, with a ledger of all requests.

    with FakeServer(reply=lambda body: "YES", faults=["429", None, "drop"]) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="x")        # the first request meets "429", the third "drop"
        assert [entry["fault"] for entry in server.ledger] == [...]

It runs in a thread of its own (own event loop; callables and the ledger stay plain Python).
"""

import asyncio
import hashlib
import json
import random
import re
import threading
import time

from aiohttp import web


def default_reply(body):
    """Return `reply-<8 hex of the messages>`, so that equal requests get equal replies."""
    return "reply-" + hashlib.sha256(json.dumps(body.get("messages"), sort_keys=True).encode()).hexdigest()[:8]


def instance(schema, draw=0):
    """Return an instance of a JSON schema in the forms that the package has, which a number chooses."""
    if "enum" in schema:
        return schema["enum"][draw % len(schema["enum"])]
    if schema["type"] == "object":
        return {name: instance(part, draw) for name, part in schema["properties"].items()}
    return {"array": [], "boolean": True}.get(schema["type"], f"text {draw}")


def pieces(text):
    """Return the tokens of a text: its words."""
    return re.findall(r"\s*\S+", text)


def chance(model, piece):
    """Return the log-probability of a token, which every model has of its own."""
    return -1 - int(hashlib.sha256(f"{model} {piece}".encode()).hexdigest()[:2], 16) / 100


def logprobs(text, k):
    """Return OpenAI's logprobs object: one token per word, itself first, then YES, NO and fillers."""

    def entry(token, value):
        return {"token": token, "logprob": value, "bytes": list(token.encode("utf-8", "replace"))}

    rows = []
    for token in pieces(text):
        names = [token, *(name for name in ("YES", "NO") if name != token), *(f"t{i}" for i in range(k))]
        rows.append({**entry(token, -0.1), "top_logprobs": [entry(n, -0.1 - i) for i, n in enumerate(names[:k])]})
    return {"content": rows, "refusal": None}


def completion(body, text, cost=None):
    """Return the body of a good response to the request `body`."""
    prompt = sum(len(str(message.get("content"))) for message in body.get("messages") or []) // 4 + 1
    made = len(text.split()) + 1
    usage = {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}
    usage |= {"prompt_tokens_details": {"cached_tokens": prompt // 2}}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 0}} | ({} if cost is None else {"cost": cost})
    choice = {"index": 0, "message": {"role": "assistant", "content": text, "refusal": None}, "finish_reason": "stop"}
    choice["logprobs"] = logprobs(text, body.get("top_logprobs") or 0) if body.get("logprobs") else None
    if "grammar" in body:
        rows = [{"token": piece, "logprob": chance(body["model"], piece)} for piece in [*pieces(text), ""]]
        choice["logprobs"] = {"content": rows}  # the last is the end of the turn
    head = {"id": "chatcmpl-fake", "object": "chat.completion", "created": 1700000000, "model": body.get("model")}
    return {**head, "choices": [choice], "usage": usage}


def error(message, code=None, kind="invalid_request_error", **more):
    return {"error": {"message": message, "type": kind, "code": code, "param": None, **more}}


RATE = error("Rate limit reached for requests", "rate_limit_exceeded", "requests")
QUOTA = error("You exceeded your current quota, please check your plan.", "insufficient_quota", "insufficient_quota")
TEMPERATURE = "Unsupported value: 'temperature' does not support this value. Only the default (1) is supported."
MAX_TOKENS = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."

# name -> (status, body, headers from the seconds to wait): answers that need no good response.
ANSWERS = {
    "429": (429, RATE, lambda s: {"Retry-After": str(s)}),
    "429-none": (429, RATE, None),
    "429-hour": (429, RATE, lambda s: {"Retry-After": "3600"}),
    "429-quota": (429, QUOTA, None),
    "401": (401, error("Incorrect API key provided: {key}.", "invalid_api_key"), None),  # two repeat what was sent
    "404": (404, error("The model `{model}` does not exist.", "model_not_found"), None),
    "402": (402, error("Insufficient credits. Add more credits to continue.", 402), None),
    "403": (403, error("Your country, region, or territory is not supported.", "unsupported_country"), None),
    "400": (400, error("Invalid request", "bad_request"), None),
    "no-such-model": (400, error("nobody/x is not a valid model ID", 400), None),
    "400-temperature": (400, error(TEMPERATURE, "unsupported_value", param="temperature"), None),
    "400-max_tokens": (400, error(MAX_TOKENS, "unsupported_parameter", param="max_tokens"), None),
    "500": (500, error("The server had an error while processing your request.", None, "server_error"), None),
    "503": (503, error("The engine is currently overloaded.", None, "overloaded"), None),
    "empty": (200, b"", None),
    "html": (200, b"<!doctype html><html><script>alert(1)</script><p>Log in to continue</p></html>", None),
    "bad-utf8": (200, b'{"choices": [{"message": {"content": "\xff\xfe\xc3("}, "finish_reason": "stop"}]}', None),
    "200-error": (200, error("Provider returned error", 502), None),
}


def message(finish="stop", reasoning=0, **fields):
    """Return an edit that sets the reply's message fields and finish reason in a good response."""

    def edit(data):
        data["choices"][0]["message"].update(fields)
        data["choices"][0]["finish_reason"] = finish
        data["usage"]["completion_tokens_details"]["reasoning_tokens"] = reasoning
        data["usage"]["completion_tokens"] += reasoning

    return edit


# name -> edit of a good response
EDITS = {
    "choices-empty": lambda data: data.update(choices=[]),
    "finish-error": message("error", content="partial ans"),
    "empty-content": message(content=""),
    "null-content": message(content=None),
    "length": message("length", 64, content=""),
    "cut": message("length", content="An answer that was cut o"),
    "filtered": lambda data: data.update(choices=[{"finish_reason": "content_filter: PROHIBITED_CONTENT"}]),
    "refusal": message(content=None, refusal="I'm sorry, I can't help with that."),
    "surrogate": message(content="lone \ud800 surrogate"),
    "nul": message(content="before\x00after"),
}
WIRE = ("drop", "short", "truncated", "hang", "trickle")  # they break the transport, see FakeServer._wire
FAULTS = (*ANSWERS, *EDITS, *WIRE)


class FakeServer:
    """A server for a `with` block; `url` ends in /v1, `ledger` has one dict per request, in order of arrival.

    reply: callable body -> text, a text, or a list of texts used up in turn; default `default_reply`, or the first
        valid instance where the request has a JSON schema.
    faults: a list (entry i for request i, None is good, good after its end), a dict {i: name}, or a callable
        (i, body) -> name or None; else each attempt of each request draws a fault of `fault_names` with probability
        `fault_rate`, seeded by request and attempt, whatever the order of arrival. "400-temperature" and
        "400-max_tokens" strike only requests that have the parameter, like the models that refuse it.
    Also llama.cpp's /tokenize, with a second token for a word that
    is not ASCII, and chat with a grammar of its tokens.
    retry_after: seconds that a 429 asks for; hang: seconds until hang, and trickle, give up. While `open` is cleared,
    all that arrives waits for its answer. The ledger's times are of the monotonic clock.
    """

    def __init__(self, reply=None, *, latency=0.0, faults=(), fault_rate=0.0, fault_names=FAULTS, seed=0,
                 retry_after=1.0, hang=30.0, cost=None, port=0):  # fmt: skip
        self.reply, self.latency, self.faults, self.fault_rate = reply, latency, faults, fault_rate
        self.fault_names, self.seed, self.retry_after, self.hang, self.cost = fault_names, seed, retry_after, hang, cost
        scripted = faults.values() if isinstance(faults, dict) else () if callable(faults) else faults
        if unknown := {*scripted, *fault_names} - {*FAULTS, None}:
            raise ValueError(f"unknown faults {sorted(unknown)}; known: {', '.join(FAULTS)}")
        self.port, self.ledger, self.replies, self.attempts, self.vocabulary = port, [], 0, {}, []
        self.ready_at = 2  # the look at which a batch has ended
        self.open = threading.Event()
        self.open.set()
        self.batches, self.files, self.batch_faults, self.price, self.dollars = [], [], {}, (1.0, 4.0), 0.0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self):
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready.set)), daemon=True)
        self._thread.start()
        if not ready.wait(60):
            raise RuntimeError("the fake server did not start within a minute")
        return self

    def __exit__(self, *exc):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self, ready):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, backlog=1024).start()
        self.port = runner.addresses[0][1]
        ready()
        await self._stop.wait()
        await runner.cleanup()

    def _fault(self, index, body):
        if callable(self.faults):
            name = self.faults(index, body)
        elif isinstance(self.faults, dict):
            name = self.faults.get(index)
        else:
            name = self.faults[index] if index < len(self.faults) else None
        if not name and self.fault_rate:
            key = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
            self.attempts[key] = self.attempts.get(key, 0) + 1
            draw = random.Random(f"{self.seed} {key} {self.attempts[key]}")
            name = draw.choice(self.fault_names) if draw.random() < self.fault_rate else None
        return None if name and name.startswith("400-") and name[4:] not in body else name

    def _text(self, body):
        if isinstance(self.reply, list):
            self.replies += 1
            return self.reply[self.replies - 1]
        if self.reply is not None:
            return self.reply(body) if callable(self.reply) else self.reply
        if "grammar" in body:
            return "".join(self.vocabulary[int(i)] for i in re.findall(r"<\[(\d+)\]>", body["grammar"]))
        form = body.get("response_format") or {}
        return json.dumps(instance(form["json_schema"]["schema"])) if "json_schema" in form else default_reply(body)

    def _tokens(self, text):
        start = len(self.vocabulary)
        for piece in pieces(text):
            self.vocabulary += [piece] if piece.isascii() else [piece, ""]
        return {"tokens": [*range(start, len(self.vocabulary))]}

    async def _handle(self, request):
        if request.path == "/health":
            return web.json_response({"status": "ok"})
        raw, headers = await request.content.read(), dict(request.headers)
        if re.search("/(files|batches)", request.path):
            return self._batched(request, raw, request.path.split("/")[3:])
        body = json.loads(raw)
        index, entry = len(self.ledger), {"time": time.monotonic(), "path": request.path, "headers": headers}
        self.ledger.append(entry)
        entry.update(body=body, authorized="Authorization" in headers, fault=None, status=404)
        if not request.path.endswith(("/chat/completions", "/tokenize")):
            return web.json_response(error(f"Unknown URL {request.path}"), status=404)
        fault = self._fault(index, body)
        entry.update(fault=fault, status=200)
        if self.latency:
            await asyncio.sleep(self.latency)
        while not self.open.is_set():  # noqa: ASYNC110  the tests' threads set it
            await asyncio.sleep(0.01)
        extra = {"x-request-id": f"req-{index}"}
        if fault in WIRE:
            return await self._wire(fault, request, body)
        if fault in ANSWERS:
            entry["status"], data, wait = ANSWERS[fault]
            extra |= wait(self.retry_after) if wait else {}
        elif request.path == "/tokenize":
            data = self._tokens(body["content"])
        else:
            data = completion(body, self._text(body), self.cost)
            EDITS.get(fault, lambda data: None)(data)
        kind = "text/html" if isinstance(data, bytes) and data.startswith(b"<") else "application/json"
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        if fault in ("401", "404"):
            key, model = headers.get("Authorization", "")[7:], str(body.get("model"))
            data = data.replace(b"{key}", key.encode()).replace(b"{model}", model.encode())
        return web.Response(status=entry["status"], body=data, content_type=kind, headers=extra)

    # batches, inline as OpenRouter takes them and as OpenAI's files; how one fares is `batch_faults` {number: name}:
    # "lost" and "unmade" (no answer to the POST; made all the same, or not), "429", "failed", "expired" (half of its
    # lines), "stays" (validating until it is none of its faults), "500" (at each second look). Lines have `faults`, of
    # which "drop" is an error without a response. `batches`: what was made. `dollars`: half of what they cost.

    def _batched(self, request, raw, rest):
        """Answer a request about files or batches."""
        if "/files" in request.path and rest:
            return web.Response(body=self.files[int(rest[0].removeprefix("file-"))])
        if "/files" in request.path:
            self.files.append(re.search(rb'\r\n\r\n({"custom_id.*?)\r\n--', raw, re.S)[1])
            return web.json_response({"id": f"file-{len(self.files) - 1}", "object": "file"})
        if rest:
            return self._look(self.batches[int(rest[0].removeprefix("batch-"))])
        if request.method == "GET":
            return web.json_response({"object": "list", "data": self.batches[::-1], "has_more": False})
        body, number = json.loads(raw), len(self.ledger)
        self.ledger.append({"body": body, "time": time.monotonic()})
        fault = self.batch_faults.get(number)
        if fault == "429":
            return web.json_response(RATE, status=429)
        if fault != "unmade":
            assert "requests" not in body or [*body] == ["endpoint", "model", "requests"]
            name = body.get("input_file_id", "file-").removeprefix("file-")
            lines = body.pop("requests", None) or [json.loads(line) for line in self.files[int(name)].splitlines()]
            more = {"lines": lines, "number": number, "looks": 0, "created_at": int(time.time()), "object": "batch"}
            self.batches.append({"id": f"batch-{len(self.batches)}", "status": "validating", **body, **more})
        if fault in ("lost", "unmade"):
            request.transport.close()
            return web.Response()
        return web.json_response({k: v for k, v in self.batches[-1].items() if k != "lines"}, status=202)

    def _look(self, batch):
        """Answer what has become of a batch: in the works at first, ended at the look `ready_at`."""
        batch["looks"] += 1
        fault = self.batch_faults.get(batch["number"])
        if fault == "500" and batch["looks"] % 2:
            return web.json_response(error("Try later"), status=500)
        if fault != "stays" and batch["looks"] >= self.ready_at and batch["status"] == "validating":
            batch["status"] = fault if fault in ("failed", "expired") else "completed"
            batch["error"] = {"message": "It took too long"} if fault in ("failed", "expired") else None
            lines = batch["lines"][:: 2 if fault == "expired" else 1] if fault != "failed" else []
            before, results = self.dollars, [self._line(i, line) for i, line in enumerate(reversed(lines))]
            if "input_file_id" in batch:
                for name, good in (("output_file_id", True), ("error_file_id", False)):
                    batch[name] = f"file-{len(self.files)}"
                    these = (line for line in results if bool(line["response"]) == good)
                    self.files.append("\n".join(map(json.dumps, these)).encode())
            else:
                good = sum(bool(line["response"] and line["response"]["status_code"] == 200) for line in results)
                batch |= {"results": results, "usage": {"cost": self.dollars - before}}
                batch["request_counts"] = {"completed": good}
        return web.json_response({k: v for k, v in batch.items() if k != "lines"})

    def _line(self, index, line):
        fault, body = self._fault(index, line["body"]), line["body"]
        said, status = completion(body, self._text(body)), 200
        if fault == "drop":
            return {"custom_id": line["custom_id"], "response": None, "error": {"message": "This line failed"}}
        if fault in ANSWERS:
            status, said, _ = ANSWERS[fault]
        else:
            EDITS.get(fault, lambda data: None)(said)
            tokens = said["usage"]["prompt_tokens"], said["usage"]["completion_tokens"]
            self.dollars += sum(n * usd for n, usd in zip(tokens, self.price, strict=True)) / 2e6
        return {"custom_id": line["custom_id"], "response": {"status_code": status, "body": said}, "error": None}

    async def _wire(self, fault, request, body):
        """Break the connection: no answer, half an answer, an answer that is not JSON, or one that never ends."""
        data = json.dumps(completion(body, default_reply(body))).encode()
        if fault == "truncated":  # well-formed HTTP, half of the JSON
            return web.Response(body=data[: len(data) // 2], content_type="application/json")
        if fault == "hang":
            await asyncio.sleep(self.hang)
        elif fault in ("short", "trickle"):
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            response.content_length = len(data)
            await response.prepare(request)
            await response.write(data[:40])
            end = time.monotonic() + (self.hang if fault == "trickle" else 0)
            for byte in data[40:-1]:
                if time.monotonic() > end:
                    break
                await asyncio.sleep(0.2)
                await response.write(bytes([byte]))
        if request.transport:
            request.transport.close()  # flushes what was written, then closes
        return web.Response()
