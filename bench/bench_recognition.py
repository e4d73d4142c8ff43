"""Benchmarks of self-recognition: do the intervals hold what is planted, and how often do the tests reject?"""

import asyncio
import sys
import time
from pathlib import Path

import planted_rates

VALIDATION = Path(__file__).parents[1] / "data" / "validation"


def planted(seeds: int = 200, prompts: int = 60) -> dict:
    """Cover the planted rates of every simulated evaluator by the default 95 % interval: `data/validation/planted.csv`.

    The whole way from writing and asking to the table, over fixed seeds; about seven minutes.
    """
    import pandas as pd
    from simulate_coverage import share

    from selfeval import stats
    from selfeval.providers.models import models
    from selfeval.recognition import prompts as recognition_prompts
    from selfeval.recognition import run as recognition_run
    from selfeval.recognition.texts import generate_texts
    from selfeval.records.tables import write_csv
    from selfeval.simulated import Client

    simulated = (model for model in models().values() if model.provider.name == "sim")
    fleet = [model for model in simulated if "role" not in (model.simulation or {})]
    asked = [{"prompt_id": str(i), "prompt": f"Write about thing number {i}."} for i in range(prompts)]
    truth = {}
    for task in ("exact_model", "binary_self"):
        for model in fleet:
            hit, false_claim = planted_rates.recognition(model, len(fleet) if task == "exact_model" else None)
            values = {"self_accuracy": hit, "false_claim_rate": false_claim, "discrimination": hit - false_claim}
            truth |= {(task, model.id, name): value for name, value in values.items()}

    async def one(seed: int) -> pd.DataFrame:
        async with Client() as asking:
            texts, _ = await generate_texts(asking, fleet, asked, words=20, seed=seed)
            how = {"tasks": ("exact_model", "binary_self"), "seed": seed}
            answers = await recognition_run.collect_predictions(
                asking, fleet, texts, recognition_prompts.Condition(), **how
            )
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


def coverage(tables: int = 2_000, n_resamples: int = 2_000, seed: int = 0) -> dict:
    """Cover known truths by every interval, and count what the tests reject: `data/validation/`, about three minutes.

    With 10,000 resamples the two bootstraps cover .0005 more on average.
    """
    import pandas as pd
    import simulate_coverage as simulate

    from selfeval.records.tables import write_csv

    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    covered, listed, rejected = simulate.coverage(tables, n_resamples, seed, say=say)
    listed = pd.concat([listed, simulate.general(tables // 5, seed)])
    found = {"coverage": covered, "listed": listed, "type_one": rejected}
    for name, table in found.items():
        write_csv(VALIDATION / f"{name}.csv", table.round(6))
    default = covered[covered["method"] == "default"]
    lowest = default.loc[default["coverage"].idxmin()]
    tests = rejected[rejected["test"] != "sign flip"]
    return {
        "tables": tables,
        "seconds": round(time.perf_counter() - started),
        "coverage_of_the_default_on_average": round(float(default["coverage"].mean()), 4),
        "lowest_coverage_of_the_default": float(lowest["coverage"]),
        "in": f"{lowest['scenario']}, {lowest['statistic']}, {lowest['prompts']} prompts",
        "most_rejected_by_a_test": float(tests["rejected"].max()),
    }


def blind(tables: int = 2_000, seed: int = 0) -> dict:
    """Ask what evaluators get that do not see who wrote a text: `data/validation/blind.csv`, about fifteen minutes."""
    import simulate_blind

    from selfeval.records.tables import write_csv

    found = simulate_blind.simulate(tables, seed)
    write_csv(VALIDATION / "blind.csv", found.round(6))
    return {
        "cells": len(found),
        "tables": tables,
        "rejected_pooled_and_most": [round(float(found["rejected"].mean()), 4), float(found["rejected"].max())],
        "covered_pooled_and_least": [round(float(found["coverage"].mean()), 4), float(found["coverage"].min())],
    }
