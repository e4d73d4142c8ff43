"""What the client adds to its calls: pairs with the bare openai client, against a fake server in a process of its own.

The bare client is openai's with its aiohttp backend and raw responses: no store, no bound but its workers, no reading
of the reply.
"""

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from served import served

WAYS = {"100 ms, 64 in flight": (1_000, 0.1, 64), "20 ms, 128 in flight": (5_000, 0.02, 128)}


def requests(calls: int) -> list:
    """Return the questions: a text of 60 words each."""
    from selfeval.providers.models import get
    from selfeval.providers.request import Request
    from selfeval.recognition.prompts import Condition, Question

    model = get("openai:bench")
    texts = ({"text": f"Text number {i}. " * 20} for i in range(calls))
    return [Request(model, Question("binary_self", model, (text,), {}, Condition()).messages()) for text in texts]


async def bare(url: str, calls: int, flying: int) -> None:
    """Make the calls by openai alone."""
    import httpx2
    import openai

    limits = httpx2.Limits(max_connections=flying, max_keepalive_connections=flying)
    left = iter(requests(calls))
    http = openai.DefaultAioHttpClient(limits=limits)
    async with openai.AsyncOpenAI(base_url=url, api_key="bench", max_retries=0, http_client=http) as client:

        async def work():
            for request in left:
                await client.chat.completions.with_raw_response.create(model="bench", messages=request.messages)

        await asyncio.gather(*(work() for _ in range(flying)))


async def ours(url: str, calls: int, flying: int) -> None:
    """Make the calls by `chat_all`, with a fresh store."""
    from selfeval.providers.client import Client
    from selfeval.providers.store import Store

    with tempfile.TemporaryDirectory() as folder:
        async with Client(flying, Store(Path(folder) / "store.sqlite")) as client:
            replies = await client.chat_all(requests(calls), label=None)
        assert {reply.text for reply in replies} == {"NO"}


def measure(way, url: str, calls: int, flying: int) -> dict:
    """Return the seconds in all, and CPU milliseconds a call."""
    began, cpu = time.perf_counter(), time.process_time()
    asyncio.run(way(url, calls, flying))
    return {"seconds": time.perf_counter() - began, "cpu_ms": 1000 * (time.process_time() - cpu) / calls}


def client() -> dict:
    """Compare with the bare client: `chat_all` with a fresh store.

    `PAIRS` in the environment sets how many pairs (seven); the medians count.
    """
    import openai  # noqa: F401  its import takes half a second, once per process

    found = {}
    for name, (calls, latency, flying) in WAYS.items():
        with served(latency) as url:
            os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
            pairs = [
                (measure(bare, url, calls, flying), measure(ours, url, calls, flying))
                for _ in range(int(os.environ.get("PAIRS", "7")))
            ]
        found[name] = {
            part: {
                "bare": round(statistics.median(before[part] for before, _ in pairs), 3),
                "ours": round(statistics.median(after[part] for _, after in pairs), 3),
                "ratio": round(statistics.median(after[part] / before[part] for before, after in pairs), 3),
            }
            for part in ("seconds", "cpu_ms")
        }
    return found
