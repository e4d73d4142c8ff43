"""What the client adds to its calls: pairs with the bare openai client, against a stub in a process of its own.

The bare client is openai's with its aiohttp backend and raw responses: no store, no bound but its workers, no reading
of the reply. The stub answers after its latency and says when the first and the last request came.
"""

import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from fake_server import completion

WAYS = {"100 ms, 64 in flight": (1_000, 0.1, 64), "20 ms, 128 in flight": (5_000, 0.02, 128)}
VALID = 1.06  # times the ideal that raw aiohttp may take: else the machine or the stub is what is measured


class Stub(asyncio.Protocol):
    """One connection of the stub; what all connections saw since it was last asked for is `seen`."""

    latency, seen, flying = 0.1, {}, 0
    answer = json.dumps(completion({"model": "bench", "messages": []}, "NO")).encode()

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            length = int((re.search(rb"content-length: (\d+)", head, re.I) or [0, 0])[1])
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            if head.startswith(b"GET"):
                self.send(json.dumps(Stub.seen).encode())
                Stub.seen = {}
            else:
                now, Stub.flying = time.monotonic(), Stub.flying + 1
                Stub.seen = {"first": now} | Stub.seen | {"last": now}
                Stub.seen["most"] = max(Stub.seen.get("most", 0), Stub.flying)
                asyncio.get_running_loop().call_later(Stub.latency, self.reply)

    def reply(self):
        Stub.flying -= 1
        self.send(Stub.answer)

    def send(self, body):
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )


async def serve(latency: float) -> None:
    """Answer until this is terminated."""
    Stub.latency = latency
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def stub(latency: float):
    """Run the stub in a process of its own; yield its URL."""
    with subprocess.Popen([sys.executable, __file__, str(latency)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def in_turn(one, calls: int, flying: int) -> None:
    """Make the calls, as many at a time as are to be in flight."""
    left = iter(range(calls))

    async def work():
        for i in left:
            await one(i)

    await asyncio.gather(*(work() for _ in range(flying)))


def requests(calls: int) -> list:
    """Return the questions: a text of 60 words each."""
    from selfeval.asking.request import Request
    from selfeval.models import get
    from selfeval.recognition.questions import Condition, Question

    model = get("openai:bench")
    texts = ({"text": f"Text number {i}. " * 20} for i in range(calls))
    return [Request(model, Question("binary_self", model, (text,), {}, Condition()).messages()) for text in texts]


async def raw(url: str, calls: int, flying: int) -> None:
    """Make the calls by aiohttp alone."""
    import aiohttp

    body = json.dumps({"model": "bench", "messages": requests(1)[0].messages}).encode()
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=flying), headers=headers) as session:

        async def one(i):
            async with session.post(f"{url}/chat/completions", data=body) as response:
                await response.read()

        await in_turn(one, calls, flying)


async def bare(url: str, calls: int, flying: int) -> None:
    """Make the calls by openai alone."""
    import httpx2
    import openai

    limits = httpx2.Limits(max_connections=flying, max_keepalive_connections=flying)
    asked = [request.messages for request in requests(calls)]
    http = openai.DefaultAioHttpClient(limits=limits)
    async with openai.AsyncOpenAI(base_url=url, api_key="bench", max_retries=0, http_client=http) as client:
        create = client.chat.completions.with_raw_response.create
        await in_turn(lambda i: create(model="bench", messages=asked[i]), calls, flying)


async def ours(url: str, calls: int, flying: int) -> None:
    """Make the calls by `chat_all`, with a fresh store."""
    from selfeval.asking.client import Client
    from selfeval.asking.store import Store

    asked = requests(calls)
    with tempfile.TemporaryDirectory() as folder:
        async with Client(flying, Store(Path(folder) / "store.sqlite")) as client:
            replies = await client.chat_all(asked, label=None)
        assert {reply.text for reply in replies} == {"NO"}


def measure(way, url: str, calls: int, flying: int) -> dict:
    """Return the seconds from the first to the last request and in all, CPU milliseconds a call, most in flight."""
    began, cpu = time.perf_counter(), time.process_time()
    asyncio.run(way(url, calls, flying))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
        seen = json.load(answer)
    span = seen["last"] - seen["first"]
    return {"first_to_last": span, "seconds": seconds, "cpu_ms": 1000 * cpu / calls, "in_flight": seen["most"]}


def client() -> dict:
    """Compare with the bare client: from the first to the last request, and the whole `chat_all` with a fresh store.

    `PAIRS` in the environment sets how many pairs (seven); the medians count.
    """
    import openai  # noqa: F401  its import takes half a second, once per process

    found = {}
    for name, (calls, latency, flying) in WAYS.items():
        with stub(latency) as url:
            os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
            by_ideal = measure(raw, url, calls, flying)["seconds"] / (calls * latency / flying)
            pairs = [
                (measure(bare, url, calls, flying), measure(ours, url, calls, flying))
                for _ in range(int(os.environ.get("PAIRS", "7")))
            ]
        found[name] = {"raw_aiohttp_by_ideal": round(by_ideal, 2), "valid": by_ideal <= VALID}
        for part in ("first_to_last", "seconds", "cpu_ms"):
            found[name][part] = {
                "bare": round(statistics.median(before[part] for before, _ in pairs), 3),
                "ours": round(statistics.median(after[part] for _, after in pairs), 3),
                "ratio": round(statistics.median(after[part] / before[part] for before, after in pairs), 3),
            }
        found[name]["in_flight"] = [after["in_flight"] for _, after in pairs]
    return found


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
