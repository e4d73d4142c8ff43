"""Benchmarks of identity: the suite's wall time, and whether the intervals hold what is planted."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

import planted_rates
from fake_server import served


class Coverage:
    """Count how often the default interval of a statistic holds its planted value."""

    def __init__(self):
        self.hits: dict[tuple[str, str], list[bool]] = {}

    def check(self, table, statistic: str, value: float, turn: int | None = None, **group: str) -> None:
        for name, wanted in {"statistic": statistic, **({"turn": turn} if turn else {}), **group}.items():
            table = table[table[name] == wanted]
        row, where = table.iloc[0], " ".join([*group.values(), *([f"turn {turn}"] if turn else [])])
        if row["low"] == row["low"]:  # one template alone has no interval
            held = row["low"] - 1e-9 <= value <= row["high"] + 1e-9
            self.hits.setdefault((statistic, where or "all"), []).append(bool(held))

    def summary(self, seeds: int) -> dict:
        def share(*statistics: str) -> float:
            found = [hit for (name, _), hits in self.hits.items() if name in statistics for hit in hits]
            return round(sum(found) / len(found), 4)

        names = sorted({name for name, _ in self.hits})
        shares = {" ".join(key): round(sum(hits) / len(hits), 4) for key, hits in self.hits.items()}
        return {
            "seeds": seeds,
            "pooled_coverage": share(*names),
            "by_statistic": {name: share(name) for name in names},
            "lowest_coverage": min(shares.items(), key=lambda item: item[1]),
            "coverage": shares,
        }


def planted_identity(seeds: int = 200, repeats: int = 5) -> dict:
    """Cover planted claim discrimination, flip incidence, restricted mean and consistency by the default intervals.

    Responders whose templates differ, in conditions of 6 to 40 templates, over fixed seeds.
    """
    import numpy as np
    import pandas as pd
    from identity_records import Claims, Pressure

    from selfeval.stats import identity_table, survival_table

    asked = {
        "mild 20": (Claims(), 20),
        "firm 20": (Claims(true=0.97, false=0.03, placebo=0.02, mention=0.01, concentration=8), 20),
        "yielding 10": (Claims(true=0.8, false=0.6, placebo=0.5, mention=0.1, neutral=0.05, concentration=2), 10),
        "blind 6": (Claims(true=0.5, false=0.5, placebo=0.5, concentration=10, alike=0.9), 6),
        "alike 40": (Claims(true=0.7, false=0.4, concentration=1e6), 40),
    }
    pressed = {
        "slow 20": (Pressure(), 20),
        "fast 10": (Pressure(flip=0.3, concentration=6, right=0.8), 10),
        "rare 40": (Pressure(flip=0.03, concentration=2), 40),
        "abstains 20": (Pressure(flip=0.15, abstain=0.2), 20),
        "leaves 20": (Pressure(flip=0.15, abstain=0.2, abstainers_leave=True), 20),
    }
    covered = Coverage()
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        frames = [plan.records(rng, size, repeats, condition=name) for name, (plan, size) in asked.items()]
        table = identity_table(pd.concat(frames), by=("model", "condition"), n_resamples=1)
        for name, (plan, _) in asked.items():
            covered.check(table, "claim_discrimination", plan.discrimination, condition=name)
            covered.check(table, "consistency", plan.consistency, condition=name)
        for name, (plan, size) in pressed.items():
            records = plan.records(rng, size, repeats, condition=name)
            mode = "absorbing" if plan.abstainers_leave else "at_risk"
            table = survival_table(records, by=("condition",), abstaining=mode, n_resamples=1)
            covered.check(table, "restricted_mean", plan.restricted_mean, condition=name)
            for turn, chance in enumerate(plan.incidence(), 1):
                covered.check(table, "flip_incidence", chance, turn, condition=name)
    return covered.summary(seeds)


def planted_suite(seeds: int = 200, repeats: int = 3) -> dict:
    """Put the wide suite to simulated models that fall for kinds of claims at planted rates, and cover these.

    Real situations, replies, read-outs and extraction, over fixed seeds; every seed is a new model, whose own chance
    of falling for a situation varies around the planted one. Conversations count by their first reply.
    """
    import pandas as pd

    from selfeval.asking.client import Client
    from selfeval.identity import runner, simulated, suite
    from selfeval.identity.claims import entity_of
    from selfeval.stats import identity_table, survival_table

    rates = {"accept_true": 0.9, "accept_false": {"switch": 0.5, "correction": 0.35, "other": 0.2}, "flip": 0.15}
    templates, turns, covered = suite.read_suite(), 4, Coverage()

    async def ask(model) -> pd.DataFrame:
        async with Client() as asking:
            records = await runner.run_suite(asking, [model], templates, arms=("true", "false-far"), repeats=repeats)
        return pd.DataFrame(records)

    for seed in range(seeds):
        model = simulated.model("local/smollm2-135m", f"sim/planted-{seed}", alike=0.2, **rates)
        own = entity_of(simulated.played(model))
        frame = asyncio.run(ask(model))
        first = frame[frame["turn"] == 0].reset_index(drop=True)
        false = first[first["arm"] == "false-far"]
        claims = [simulated.claimed(messages[:-2], own) for messages in false["messages"]]  # before the read-out
        known = [planted_rates.identity(model, c.kind) if c and not c.true else None for c in claims]
        false = false.assign(
            adopts=[k["accept_false"] if k else 0.0 for k in known],
            agrees=[k["agree_false"] if k else 1.0 for k in known],
        )
        false = false[false["source"] == "readout"]
        paired = false[false["template_id"].isin(first.loc[first["arm"] == "true", "template_id"])]
        for by in (("model",), ("family",)):
            table = identity_table(first, by=by, n_resamples=1)
            alike = identity_table(false, by=by, n_resamples=1)
            for key, rows in paired.groupby(by[0]):
                group = {} if by == ("model",) else {"family": key}
                adopted = rows.groupby("template_id")["adopts"].mean().mean()
                covered.check(table, "claim_discrimination", rates["accept_true"] - adopted, **group)
            for key, rows in false.groupby(by[0]):
                group = {} if by == ("model",) else {"family": key}
                covered.check(alike, "consistency", rows.groupby("template_id")["agrees"].mean().mean(), **group)
        table = survival_table(frame, horizon=turns, n_resamples=1)
        stays = 1 - rates["flip"]
        for turn in range(1, turns + 1):
            covered.check(table, "flip_incidence", 1 - stays**turn, turn)
        covered.check(table, "restricted_mean", sum(stays**turn for turn in range(turns)))
    return covered.summary(seeds)


def identity(repeats: int = 5, latency: float = 0.1, in_flight: int = 16, templates: str = "suite") -> dict:
    """Put the whole identity suite to one model, every turn and read-out; compare with the bound of slots and turns."""
    import openai  # noqa: F401

    from selfeval.asking.client import Client
    from selfeval.asking.store import Store
    from selfeval.identity import runner, suite
    from selfeval.models import get

    async def ask(store: Path) -> tuple[float, float, int, list]:
        async with Client(in_flight, Store(store)) as asking:
            model = get("openai:gpt-4-turbo")
            held = suite.situations(templates, model)
            design = [runner.Conversation(model, s, r) for s in held for r in range(repeats)]
            started = time.perf_counter()
            await runner.converse_all(asking, design, temperature=0.7, seed=0)
            asked = time.perf_counter() - started
            records = await runner.run_suite(asking, [model], templates, repeats=repeats)
            return asked, time.perf_counter() - started - asked, asking.tally.calls, records

    with tempfile.TemporaryDirectory() as folder, served(latency) as url:
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
        seconds, again, calls, records = asyncio.run(ask(Path(folder) / "store.sqlite"))
    longest = max(record["turn"] for record in records) + 2  # its replies, and the last one's read-out
    ideal = max(calls / in_flight, longest) * latency
    return {
        "calls": calls,
        "longest_chain": longest,
        "slots": in_flight,
        "seconds": round(seconds, 2),
        "ideal_seconds": round(ideal, 2),
        "ratio": round(seconds / ideal, 2),
        "read_and_scored_again_seconds": round(again, 2),
        "calls_of_the_second_run": calls - len(records),
    }
