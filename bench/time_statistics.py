"""How fast the statistics are, and a prediction file of a million rows: parts of `make bench`.

Each measurement runs in a process of its own, so that its peak memory is its own.
"""

import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RULES = "Say what it changes for those who live with it every day, in your own words and with an example."


def statistics() -> dict:
    """Compute all statistics of the table for designs of several sizes, each in a process with one BLAS thread."""
    designs = {  # evaluators = authors, prompts, seconds allowed
        "10 x 10 x 200": (10, 200, 0.2),
        "10 x 10 x 2000": (10, 2_000, None),
        "100 x 100 x 200": (100, 200, 5.0),
    }
    found = {}
    for name, (models, prompts, seconds) in designs.items():
        found[name] = _alone("time_statistics", models, prompts) | {"bar_seconds": seconds}
    return found


def million(rows: int = 1_000_000) -> dict:
    """Read, rescore and analyse a prediction file of a million rows in a process of its own: 60 s and 2 GB allowed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predictions_made.jsonl"
        write_predictions(file, rows)
        size = file.stat().st_size
        return _alone("time_million", str(file)) | {"file_mb": size // 10**6, "bar_seconds": 60, "bar_mb": 2_000}


def reading() -> dict:
    """Measure `se.measure_recognition` on a frame of answers on record, with the peak memory above that frame."""
    found = {f"{rows:,} rows": _alone("time_frame", rows) for rows in (200_000, 1_000_000)}
    return found | {"bars": "1.5 s and 300 MB; 8 s and 1,500 MB"}


def gaps() -> dict:
    """Measure designs of fifty evaluators with and without gaps, and one with few texts on each of many prompts."""
    found = {f"50 x 50 x 40, {gap:.0%} gaps": _alone("time_gaps", 50, 40, gap) for gap in (0, 0.05)}
    found["10 x 10 x 20,000, 95% gaps"] = _alone("time_gaps", 10, 20_000, 0.95)
    return found | {"bars": "twice the seconds of the complete design; 600 MB"}


def scale() -> dict:
    """Study fifty simulated models, from texts to the table: `data/validation/scale.csv`, about four minutes."""
    import pandas as pd

    from selfeval.records.tables import write_csv

    found = [_alone("time_study", rows) for rows in (10_000, 100_000, 1_000_000)]
    write_csv(Path(__file__).parents[1] / "data" / "validation" / "scale.csv", pd.DataFrame(found))
    return {"studies": found}


def _alone(function: str, *arguments) -> dict:
    """Call one of the functions below in a fresh process, so that its peak memory is its own."""
    code = f"import json, time_statistics; print(json.dumps(time_statistics.{function}(*{arguments!r})))"
    here = str(Path(__file__).parent)
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([here, *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # verbs print how many calls they made, too


def _timed(work, times: int) -> dict:
    """Call a function several times; return the best seconds, the processor's seconds of that call, and peak MB.

    On a machine with other work the processor's seconds (of all threads) are the steadier number.
    """
    best = None
    for _ in range(times):
        started, used = time.perf_counter(), time.process_time()
        work()
        best = min(best or (1e9, 0), (time.perf_counter() - started, time.process_time() - used))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"seconds": round(best[0], 3), "cpu_seconds": round(best[1], 3), "peak_mb": peak}


def time_statistics(models: int, prompts: int, n_resamples: int = 10_000) -> dict:
    """Time `recognition_table` on a crossed design, and beside it the matrix product alone that its bootstrap rests on.

    The product: two counts per evaluator and author (named rightly, named wrongly) by prompt, times the weights.
    """
    import numpy as np

    from selfeval.statistics.resampling import Settings
    from selfeval.stats import recognition_table

    frame, times = crossed(models, prompts), 1 if models > 10 else 5
    recognition_table(frame[frame["prompt_id"] < 3], n_resamples=10)
    cells = np.random.default_rng(0).random((2 * models**2, prompts), np.float32)
    (weights,) = Settings(min(n_resamples, 1_000)).weights(prompts)
    product = _timed(lambda: [cells @ weights for _ in range(0, n_resamples, weights.shape[1])], 5)["cpu_seconds"]
    table = _timed(lambda: recognition_table(frame, n_resamples=n_resamples), times)
    return table | {"product_seconds": product, "times_the_product": round(table["cpu_seconds"] / product, 1)}


def crossed(models: int, prompts: int):
    """Return prediction records of a crossed design, one text a prompt: evaluators that know 3 texts in 10."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    ids = np.array([f"lab/model-{i}" for i in range(models)], object)
    grid = np.meshgrid(np.arange(models), np.arange(models), np.arange(prompts), indexing="ij")
    e, t, p = (x.ravel() for x in grid)
    named = np.where(rng.random(len(e)) < 0.3, t, rng.integers(0, models, len(e)))
    return pd.DataFrame({
        "text_id": t * prompts + p, "true_model": ids[t], "evaluator_model": ids[e], "task_type": "exact_model",
        "prompt_id": p, "predicted_model": ids[named], "predicted_self": named == e,
    })  # fmt: skip


def time_million(file: str) -> dict:
    """Read and analyse a prediction file; return seconds, those of the processor per step, and the peak memory."""
    from selfeval.recognition.scoring import rescore
    from selfeval.records.foreign import read_predictions
    from selfeval.stats import recognition_table

    started, marks = time.perf_counter(), [time.process_time()]
    records = read_predictions(file)
    marks.append(time.process_time())
    records, changes = rescore(records)
    marks.append(time.process_time())
    table = recognition_table(records)
    marks.append(time.process_time())
    return {
        "rows": len(records),
        "estimates": len(table),
        "changed": int(changes["changed"].sum()),
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds_read_rescore_statistics": [round(b - a, 1) for a, b in itertools.pairwise(marks)],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def time_frame(rows: int) -> dict:
    """Time the reading and the statistics of a frame of ten models with ten texts a prompt."""
    import selfeval as se

    frame = crossed(10, rows // 100).assign(prompt_id=lambda made: made["prompt_id"] // 10)
    se.measure_recognition(frame[frame["prompt_id"] < 3], n_resamples=10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found = _timed(lambda: se.measure_recognition(frame), 1)
    return found | {"mb_above_the_frame": found["peak_mb"] - before}


def time_gaps(models: int, prompts: int, gap: float) -> dict:
    """Time the statistics of a design of which a share is left out at random, prompt by prompt for each evaluator."""
    import numpy as np

    import selfeval as se

    frame = crossed(models, prompts)
    shown = np.random.default_rng(0).random((models, prompts)) >= gap
    asked = shown[frame["evaluator_model"].str[10:].astype(int), frame["prompt_id"]]
    frame = frame[asked]
    return _timed(lambda: se.measure_recognition(frame), 1)


def time_study(rows: int, models: int = 50) -> dict:
    """Time each step of a study in which every model is asked about every model's texts, with this many predictions."""
    with tempfile.TemporaryDirectory() as folder:
        rates = [{"hit": round(0.1 + 0.8 * i / models, 3), "false_claim": 0.1} for i in range(models)]
        entries = [
            {
                "id": f"sim/{i}",
                "display": f"Model {i}",
                "family": "sim",
                "developer": "selfeval",
                "simulation": of_model,
            }
            for i, of_model in enumerate(rates)
        ]
        registry = Path(folder) / "models.yaml"
        registry.write_text(json.dumps({"models": entries}))  # which is YAML
        os.environ |= {"SELFEVAL_MODELS": str(registry), "SELFEVAL_STORE": f"{folder}/replies.sqlite"}
        os.environ |= {"TQDM_DISABLE": "1"}

        import selfeval as se

        prompts = [f"Write about thing number {i}." for i in range(rows // models**2)]
        steps = {
            "texts": lambda: se.generate_texts([entry["id"] for entry in entries], prompts, words=20),
            "answers": lambda: se.collect_predictions(made["texts"], tasks="binary_self"),
            "table": lambda: se.measure_recognition(made["answers"]),
        }
        made, seconds = {}, {}
        for name, step in steps.items():
            started = time.perf_counter()
            made[name] = step()
            seconds[f"{name}_seconds"] = round(time.perf_counter() - started, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"predictions": len(made["answers"]), "models": models, **seconds, "peak_mb": peak}


def write_predictions(file: Path, rows: int) -> None:
    """Write prediction records as `02_collect_predictions` does: two tasks, ten models, five texts a prompt, in words.

    Four replies in ten are the bare name or word, the others say something around it, nearly all differently.
    """
    rng = random.Random(0)
    ids = [f"lab-{i % 4}/model-{i}" for i in range(10)]
    names = {model: f"Model {model[-1]}" for model in ids}
    words = "measured vivid formal loose dry warm clipped ornate careful plain steady playful".split()
    nouns = "opening rhythm tone structure vocabulary imagery ending punctuation argument pace".split()

    def said(answer: str) -> str:
        (a, b), x = rng.choices(words, k=2), rng.choice(nouns)
        return answer if rng.random() < 0.4 else f"The text has a {a}, {b} {x}. My best guess is {answer}."

    condition = {"answer": "free", "told": True, "labels": "names", "hints": False, "show_prompt": False}
    with file.open("w", encoding="utf-8") as out:
        for text in range(rows // 20):  # two tasks and ten evaluators on each
            author, sample, prompt = ids[text % 10], text // 10 % 5, text // 50
            shown = rng.sample(ids, 10)
            preview = " ".join(rng.choices(words + nouns, k=14))[:100]
            asked = f"Write about the {nouns[prompt % 10]} of number {prompt}. {RULES}"
            for task in ("exact_model", "binary_self"):
                for evaluator in ids:
                    exact, own = task == "exact_model", evaluator == author
                    named = author if rng.random() < 0.3 else rng.choice(ids)
                    yes = rng.random() < (0.4 if own else 0.2)
                    answer = names[named] if exact else ("NO", "YES")[yes]
                    record = {
                        "text_id": 10**12 + 7919 * text, "text_preview": preview, "true_model": author,
                        "true_model_display": names[author], "evaluator_model": evaluator, "task_type": task,
                        "predicted_model": named if exact else None,
                        "predicted_self": named == evaluator if exact else yes,
                        "is_correct": named == author if exact else yes == own, "prompt_used": asked,
                        "prompt_id": f"prompt-{prompt}", "sample": sample, "candidates": shown if exact else None,
                        "condition": condition, "reply": said(answer), "status": "ok", "score": None,
                        "usage": dict.fromkeys(("prompt", "completion", "cached"), rng.randrange(10**6)),
                        "request_id": f"chatcmpl-{rng.getrandbits(128):032x}",
                    }  # fmt: skip
                    out.write(json.dumps(record) + "\n")
