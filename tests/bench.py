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
            requests = [
                Request(model, prompts.build_binary(f"Text number {i}. " * 20, prompts.Setting(me="me")))
                for i in range(CALLS)
            ]
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


def planted(seeds: int = 200, prompts: int = 60) -> dict:
    """Cover the planted discrimination of every simulated evaluator by the default 95 % interval, over fixed seeds."""
    import pandas as pd

    from selfeval import models, questions, recognition, simulated, stats, writing
    from selfeval.client import Client

    fleet = simulated.evaluators()
    asked = [{"prompt_id": str(i), "prompt": f"Write about thing number {i}."} for i in range(prompts)]
    covered: dict[tuple[str, str], int] = dict.fromkeys(((t, m.id) for t in questions.TASKS[:2] for m in fleet), 0)
    always = []

    async def one(seed: int) -> pd.DataFrame:
        async with Client() as asking:
            texts, _ = await writing.generate_texts(asking, fleet, asked, words=20, seed=seed)
            answers = await recognition.collect_predictions(asking, fleet, texts, questions.Condition(), seed=seed)
        return pd.DataFrame([record for records in answers.values() for record in records])

    for seed in range(seeds):
        table = stats.recognition_table(asyncio.run(one(seed)), n_resamples=1)
        rows = table[table["author"] == ""].drop_duplicates(["task", "evaluator", "statistic"])
        rows = rows.set_index(["task", "evaluator", "statistic"])
        for task, evaluator in covered:
            hit, false_claim = simulated.planted(models.get(evaluator), len(fleet) if task == "exact_model" else None)
            row = rows.loc[(task, evaluator, "discrimination")]
            covered[task, evaluator] += row["low"] - 1e-9 <= hit - false_claim <= row["high"] + 1e-9
        always.append(
            [rows.loc[("exact_model", "sim/always-itself", s), "estimate"] for s in ("advantage", "discrimination")]
        )
    shares = {f"{task} {evaluator}": count / seeds for (task, evaluator), count in covered.items()}
    return {
        "seeds": seeds,
        "prompts": prompts,
        "pooled_coverage": round(sum(shares.values()) / len(shares), 4),
        "lowest_coverage": min(shares.items(), key=lambda item: item[1]),
        "coverage": shares,
        "always_itself_advantage_and_discrimination": sorted({tuple(map(float, pair)) for pair in always}),
    }


PARTS = {"client": client, "planted": planted}

if __name__ == "__main__":
    os.environ["TQDM_DISABLE"] = "1"
    wanted = sys.argv[1:] or list(PARTS)
    print(json.dumps({name: PARTS[name]() for name in wanted}, indent=2))
