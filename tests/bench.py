"""Benchmarks: `make bench` prints one JSON object with what was measured beside the ideal. Nothing here is asserted.

Run some parts alone: `python tests/bench.py client kernels`.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bench_recognition import blind, coverage, general, planted
from bench_sweep import kernels, throughput
from fake_server import served
from time_statistics import million, statistics

CALLS, LATENCY, IN_FLIGHT = 1_000, 0.1, 64


def client() -> dict:
    """Make 1,000 calls at 100 ms latency, 64 in flight, stored and parsed; then read the same 1,000 again."""
    import openai  # noqa: F401  its import takes half a second, once per process

    from selfeval import scoring
    from selfeval.asking.client import Client
    from selfeval.asking.request import Request
    from selfeval.asking.store import Store
    from selfeval.models import get
    from selfeval.recognition import prompts

    async def ask(store: Path) -> tuple[float, int, int]:
        async with Client(IN_FLIGHT, Store(store)) as asking:
            model = get("openai:bench")
            requests = [
                Request(model, prompts.build_binary(f"Text number {i}. " * 20, prompts.Setting(me="me")))
                for i in range(CALLS)
            ]
            started = time.perf_counter()
            responses = await asking.chat_all(requests, label=None)
            answers = [scoring.parse_yes_no(response.text) for response in responses]
            seconds = time.perf_counter() - started
            return seconds, asking.tally.calls, sum(answer is not None for answer in answers)

    with tempfile.TemporaryDirectory() as folder, served(LATENCY) as url:
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


PARTS = {
    part.__name__: part
    for part in (
        client, statistics, million, planted, coverage, blind, general, kernels, throughput,
    )
}  # fmt: skip

if __name__ == "__main__":
    os.environ["TQDM_DISABLE"] = "1"
    wanted = sys.argv[1:] or list(PARTS)
    print(json.dumps({name: PARTS[name]() for name in wanted}, indent=2))
