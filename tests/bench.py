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

from time_statistics import million, statistics

CALLS, LATENCY, IN_FLIGHT = 1_000, 0.1, 64
VALIDATION = Path(__file__).parents[1] / "data" / "validation"


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
    """Cover the planted rates of every simulated evaluator by the default 95 % interval: `data/validation/planted.csv`.

    The whole way from writing and asking to the table, over fixed seeds; about seven minutes.
    """
    import pandas as pd
    from simulate_coverage import share

    from selfeval import questions, recognition, simulated, stats, writing
    from selfeval.client import Client
    from selfeval.records import write_csv

    fleet = simulated.evaluators()
    asked = [{"prompt_id": str(i), "prompt": f"Write about thing number {i}."} for i in range(prompts)]
    truth = {}
    for task in questions.TASKS[:2]:
        for model in fleet:
            hit, false_claim = simulated.planted(model, len(fleet) if task == "exact_model" else None)
            values = {"self_accuracy": hit, "false_claim_rate": false_claim, "discrimination": hit - false_claim}
            truth |= {(task, model.id, name): value for name, value in values.items()}

    async def one(seed: int) -> pd.DataFrame:
        async with Client() as asking:
            texts, _ = await writing.generate_texts(asking, fleet, asked, words=20, seed=seed)
            answers = await recognition.collect_predictions(asking, fleet, texts, questions.Condition(), seed=seed)
        return pd.DataFrame([record for records in answers.values() for record in records])

    covered, always = [], []
    for seed in range(seeds):
        table = stats.recognition_table(asyncio.run(one(seed)), n_resamples=1)
        rows = table[table["author"] == ""].drop_duplicates(["task", "evaluator", "statistic"])
        rows = rows.set_index(["task", "evaluator", "statistic"])
        found = rows.loc[list(truth)]
        right = pd.Series(truth)
        covered.append((found["low"] <= right + 1e-9) & (right - 1e-9 <= found["high"]))
        always.append(
            [rows.loc[("exact_model", "sim/always-itself", s), "estimate"] for s in ("advantage", "discrimination")]
        )
    covered = pd.DataFrame(covered)
    shares = pd.DataFrame([share(covered[key].to_numpy()) for key in truth]).rename(columns={"share": "coverage"})
    result = pd.DataFrame(list(truth), columns=["task", "evaluator", "statistic"]).assign(truth=list(truth.values()))
    result = pd.concat([result, shares], axis=1).assign(seeds=seeds, prompts=prompts)
    write_csv(VALIDATION / "planted.csv", result.round(6))
    lowest = result.loc[result["coverage"].idxmin()]
    return {
        "seeds": seeds,
        "prompts": prompts,
        "pooled_coverage": round(float(result["coverage"].mean()), 4),
        "lowest_coverage": [*lowest[["task", "evaluator", "statistic"]], float(lowest["coverage"])],
        "always_itself_advantage_and_discrimination": sorted({tuple(map(float, pair)) for pair in always}),
    }


def coverage(tables: int = 4_000, n_resamples: int = 2_000, seed: int = 0) -> dict:
    """Cover known truths by every interval, and count what the tests reject: `data/validation/`, about five minutes.

    With 10,000 resamples the two bootstraps cover .0005 more on average.
    """
    import simulate_coverage as simulate

    from selfeval.records import write_csv

    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    covered, rejected = simulate.coverage(tables, n_resamples, seed, say=say)
    power = simulate.power_of_j(tables, seed)
    for name, table in (("coverage", covered), ("type_one", rejected), ("power", power)):
        write_csv(VALIDATION / f"{name}.csv", table.round(6))
    default = covered[(covered["method"] == "default") & (covered["prompts"] >= 50)]
    lowest = default.loc[default["coverage"].idxmin()]
    return {
        "tables": tables,
        "seconds": round(time.perf_counter() - started),
        "lowest_coverage_of_the_default_from_50_prompts": float(lowest["coverage"]),
        "in": f"{lowest['scenario']}, {lowest['statistic']}, {lowest['prompts']} prompts",
    }


PARTS = {
    "client": client,
    "planted": planted,
    "statistics": statistics,
    "million": million,
    "coverage": coverage,
}

if __name__ == "__main__":
    os.environ["TQDM_DISABLE"] = "1"
    wanted = sys.argv[1:] or list(PARTS)
    print(json.dumps({name: PARTS[name]() for name in wanted}, indent=2))
