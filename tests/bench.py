"""Benchmarks: `make bench` prints one JSON object with what was measured beside the ideal. Nothing here is asserted.

Run one part alone: `python tests/bench.py client`.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CALLS, LATENCY, IN_FLIGHT = 1_000, 0.1, 64


@contextlib.contextmanager
def server(latency: float) -> Iterator[str]:
    """Run the fake chat-completions server in a process of its own; yield its URL."""
    command = [sys.executable, str(Path(__file__).with_name("fake_server.py")), "--latency", str(latency)]
    with subprocess.Popen(
        [*command, "--reply", "NO", "--seconds", "600"], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process.stdout.readline().strip()
        process.terminate()


def client() -> dict:
    """Make 1,000 calls at 100 ms latency, 64 in flight, stored and parsed; then read the same 1,000 again."""
    import openai  # noqa: F401  its import takes half a second, once per process

    from selfeval import prompts, scoring
    from selfeval.cache import Store
    from selfeval.client import Client, Request
    from selfeval.models import get

    async def ask(store: Path) -> tuple[float, int, int]:
        async with Client(IN_FLIGHT, Store(store)) as asking:
            model = get("openai:bench")
            requests = [Request(model, prompts.build_binary(f"Text number {i}. " * 20, "me")) for i in range(CALLS)]
            started = time.perf_counter()
            responses = await asking.chat_all(requests, label=None)
            answers = [scoring.parse_yes_no(response.text) for response in responses]
            seconds = time.perf_counter() - started
            return seconds, asking.tally.calls, sum(answer is not None for answer in answers)

    with tempfile.TemporaryDirectory() as folder, server(LATENCY) as url:
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
        bought, calls, parsed = asyncio.run(ask(Path(folder) / "store.sqlite"))
        read, more, _ = asyncio.run(ask(Path(folder) / "store.sqlite"))
    ideal = CALLS * LATENCY / IN_FLIGHT
    return {
        "calls": calls,
        "parsed": parsed,
        "seconds": round(bought, 2),
        "ideal_seconds": round(ideal, 2),
        "ratio": round(bought / ideal, 2),
        "stored_replies_read_seconds": round(read, 3),
        "calls_of_the_second_run": more,
    }


PARTS = {"client": client}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(PARTS)
    print(json.dumps({name: PARTS[name]() for name in wanted}, indent=2))
