"""Benchmarks of the jury: wall time, cached prompt tokens, and whether the intervals hold what is planted."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from fake_server import served


def jury(turns: int = 7, rounds: int = 2, slots: int = 16, latency: float = 0.2) -> dict:
    """Judge 1 and 50 conversations, while they go on and when they are given, by three jurors alone and in a debate.

    `ideal_calls` is the larger of calls / slots and the critical path: 2 turns - 1 (the first question is given) plus
    the last turn's statements, or for given conversations these alone. Each call takes the server's latency.
    """
    import openai  # noqa: F401

    from selfeval.asking.client import Client
    from selfeval.asking.store import Store
    from selfeval.models import get
    from selfeval.roleplay import panel
    from selfeval.roleplay.conversation import converse
    from selfeval.roleplay.jury import hold, verdict
    from selfeval.roleplay.transcripts import Conversation, Turn

    panel_of_three = panel.Jury(tuple(get(f"openai:juror-{k}") for k in range(3)), rounds=rounds, answer="free")
    player = get("openai:player")

    async def going_on(client: Client, arm: str, number: int) -> list[list[dict]]:
        judging = []

        async def one(index: int) -> None:
            def judge(conversation, exchange) -> None:
                judging.append(asyncio.create_task(
                    verdict(client, panel_of_three, conversation, arm, turn=exchange.turn, index=index)
                ))  # fmt: skip

            first = f"This is question {index}."
            await converse(client, player, player, turns=turns, first=first, on_exchange=judge, label=None)

        await asyncio.gather(*(one(index) for index in range(number)))
        return await asyncio.gather(*judging)

    async def given(client: Client, arm: str, number: int) -> list[list[dict]]:
        texts = [(speaker, f"{speaker} in turn {t}") for t in range(turns) for speaker in ("interrogator", "agent")]
        conversations = [
            Conversation(f"c{k}", [Turn(speaker, f"{text} of {k}") for speaker, text in texts]) for k in range(number)
        ]
        return [await hold(client, panel_of_three, conversations, [arm], label=None)]

    async def measure(run, arm: str, number: int, store: Path) -> dict:
        async with Client(slots, Store(store, recorded=store.parent / "none")) as client:
            await client.chat(player, [{"role": "user", "content": "Connect."}])
            started = time.perf_counter()
            rows = [row for rows in await run(client, arm, number) for row in rows]
            seconds, calls = time.perf_counter() - started, client.tally.calls - 1
        statements = 3 * (rounds if arm == "debate" else 1)
        path = (2 * turns - 1 if run is going_on else 0) + (statements if arm == "debate" else 1)
        expected = number * (turns * statements + (2 * turns - 1 if run is going_on else 0))
        ideal = max(expected / slots, path)
        return {
            "calls": calls, "expected_calls": expected, "scores": sum(row["score"] == 0.5 for row in rows),
            "ideal_calls": round(ideal, 2), "seconds": round(seconds, 2),
            "ratio": round(seconds / (ideal * latency), 2),
        }  # fmt: skip

    found = {}
    with tempfile.TemporaryDirectory() as folder, served(latency, "HUMAN_SCORE=0.5") as url:
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
        for run in (going_on, given):
            for arm in ("independent", "debate"):
                for number in (1, 50):
                    name = f"{run.__name__} {arm} {number}"
                    found[name] = asyncio.run(measure(run, arm, number, Path(folder) / f"{name}.sqlite"))
    return found


def prompt_cache(turns: int = 7) -> dict:
    """Debate turn 7 with three jurors and two rounds on the embedded model; report what its server took from its cache.

    The conversation differs at every run, so nothing of it is cached before.
    """
    from selfeval.asking.client import Client
    from selfeval.asking.store import Store
    from selfeval.models import get
    from selfeval.roleplay import panel
    from selfeval.roleplay.jury import verdict
    from selfeval.roleplay.transcripts import Conversation, Turn

    texts = [
        (speaker, f"{text} That is number {time.time_ns() % 10_000}, {turn + 1} of {turns}.")
        for turn in range(turns)
        for speaker, text in (("interrogator", ASKED[turn % len(ASKED)]), ("agent", ANSWERED[turn % len(ANSWERED)]))
    ]
    conversation = Conversation("bench", [Turn(speaker, text) for speaker, text in texts])

    async def debate(store: Path) -> list[dict]:
        async with Client(1, Store(store, recorded=store.parent / "none")) as client:
            return await verdict(client, panel.Jury((get("local/smollm2-135m"),)), conversation, "debate")

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        rows = asyncio.run(debate(Path(folder) / "store.sqlite"))
    once = [row for row in rows if not row["repaired"]]  # a second call finds nearly all of its prompt in the cache

    def tokens(name: str, rows: list[dict]) -> int:
        return sum(row["usage"].get(name, 0) for row in rows)

    return {
        "statements": len(rows),
        "prompt_tokens": tokens("prompt", rows),
        "cached_tokens": tokens("cached", rows),
        "cached_share": round(tokens("cached", rows) / tokens("prompt", rows), 3),
        "cached_share_of_unrepaired": round(tokens("cached", once) / max(tokens("prompt", once), 1), 3),
        "cached_share_by_statement": [round(row["usage"]["cached"] / row["usage"]["prompt"], 2) for row in rows],
        "repairs": len(rows) - len(once),
        "seconds": round(time.perf_counter() - started, 1),
    }


ASKED = (
    "Hi, the app closes whenever I open a report, what do I do?",
    "I tried that already. Which version is on your own screen?",
    "Fine. Busy shift today?",
)
ANSWERED = (
    "Hello! Sorry about that. Could you tell me which version you have, and since when it happens?",
    "Mine says 4.2, but the office is always a week behind. Could you clear the cache in the settings once?",
    "Busy enough, the phones have not stopped since nine. Did the report open now?",
)


def planted_jury(seeds: int = 200) -> dict:
    """Cover planted leniency, conformity and discrimination; test debate - reask where nobody conforms.

    By numpy (30 pairs of conversations, 3 turns), and by simulated jurors in the real engine (24 pairs, 1 turn).
    """
    import numpy as np
    import planted_jury as known

    from selfeval.models import get
    from selfeval.roleplay.simulated import planted

    def engine(seed: int, names: tuple[str, ...], arms: tuple[str, ...]):
        return known.judge([f"sim/juror-{name}" for name in names], known.conversations(24, 1, seed), arms, seed=seed)

    def traits(names: tuple[str, ...]) -> dict:
        truth = {f"sim/juror-{name}": planted(get(f"sim/juror-{name}")) for name in names}
        return known.truths(
            {n: tuple(t[k] for k in ("leniency", "conformity", "discrimination")) for n, t in truth.items()}
        )

    names, still = ("lenient", "stern", "blind"), ("steady", "stubborn")
    cases = {
        "numpy": (
            lambda seed: known.planted_records(seed, wanted=("independent", "debate")), known.truths(),
            lambda seed: known.planted_records(seed, conform=False, wanted=("reask", "debate")),
        ),
        "engine": (
            lambda seed: engine(seed, names, ("independent", "debate")), traits(names),
            lambda seed: engine(seed, still, ("reask", "debate")),
        ),
    }  # fmt: skip
    found: dict = {"seeds": seeds}
    for case, (moved, truth, unmoved) in cases.items():
        covered = [known.coverage(moved(seed), truth) for seed in range(seeds)]
        each = {" ".join(key): round(float(np.mean([c[key] for c in covered])), 4) for key in truth}
        tests = [known.debate_effect(unmoved(seed)) for seed in range(seeds)]
        found[case] = {
            "pooled_coverage": round(float(np.mean(list(each.values()))), 4),
            "lowest_coverage": min(each.items(), key=lambda item: item[1]),
            "coverage": each,
            "no_conformity_debate_minus_reask_significant": float(np.mean([t.p() < 0.05 for t in tests])),
            "no_conformity_mean_of_debate_minus_reask": round(float(np.mean([t.value for t in tests])), 5),
        }
    return found
