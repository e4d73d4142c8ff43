"""Simulated fleets for `12_words_and_weights`: models whose words follow something known, read by the notebook's cells.

python bench/words_and_weights.py fleet   writes the small fleet of data/validation/words_and_weights/
python bench/words_and_weights.py check   ten whole fleets and some hundred light ones: words_and_weights.csv beside it
"""

import contextlib
import io
import sys
import tempfile
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from selfeval import stats  # noqa: E402

NOTEBOOK = ROOT / "notebooks" / "12_words_and_weights.ipynb"
FOLDER = ROOT / "data" / "validation"
PLAIN = ["local/smollm2-135m", "local/qwen2.5-coder-0.5b", "local/qwen2.5-coder-1.5b"]
MODELS = [*PLAIN, "local/qwen2.5-coder-1.5b-writer"]
FITTED = stats.out_of_fold
KINDS = ("own", "peers", "length", "habit")  # what the words of a model follow
SAID = {"nothing": "habit", "own likelihood": "own", "peers, mean": "peers"}  # what the notebook calls it
STRENGTH = 0.45  # correlation within prompts of words with what they follow; in the exploratory data .39 to .48
# Log-probability per character, a row per author, a column per candidate; those of SmolLM2 and Qwen 1.5B are measured
# ones of data/corpora/families (mean, and sd within an author), the others lie between them.
MEAN = np.array([[-0.30, -0.45, -0.50, -0.51], [-0.36, -0.20, -0.26, -0.27], [-0.36, -0.24, -0.175, -0.19],
                 [-0.36, -0.25, -0.19, -0.18]])  # fmt: skip
SPREAD = np.array([[0.12, 0.20, 0.24, 0.24], [0.10, 0.06, 0.07, 0.07], [0.08, 0.06, 0.045, 0.05],
                   [0.08, 0.06, 0.05, 0.045]])  # fmt: skip
ASKED = {  # stage: what its records' condition says beyond the default
    "shown": {"show_prompt": True},
    "hidden": {},
    "json": {"show_prompt": True, "answer": "constrained"},
    "json-hidden": {"answer": "constrained"},
    "rating": {"show_prompt": True, "question": "good"},
    "turned": {"show_prompt": True, "question": "another"},
    "about": {"show_prompt": True, "about": PLAIN[0]},
    "temperature": {"show_prompt": True, "temperature": 0.7},
}


@cache
def texts(prompts: int, seed: int) -> pd.DataFrame:
    """Return texts of made-up words, whose choice and number differ between authors; siblings are alike."""
    draw = np.random.default_rng([seed, 1])
    syllables = np.array([a + b for a in "bdfgklmnprst" for b in "aeiou"])
    words = np.array(["".join(draw.choice(syllables, draw.integers(1, 4))) for _ in range(400)])
    usual, family = -np.log(np.arange(1, 401)), draw.normal(0, 0.25, 400)
    rows = []
    for author, name in enumerate(MODELS):
        liking = usual + (author > 0) * family + draw.normal(0, 0.2 if author < 3 else 0.1, 400)
        chance = np.exp(liking) / np.exp(liking).sum()
        for prompt in range(prompts):
            length = int(np.clip(np.exp(draw.normal(3.9 - 0.15 * (author == 0), 0.35 + 0.4 * (author == 0))), 5, 200))
            text = " ".join(draw.choice(words, length, p=chance)).capitalize() + "."
            about = {"prompt_id": f"p{prompt:03}", "sample": 0, "author": name, "words": length, "words_asked": 60}
            rows.append({"text_id": prompt * len(MODELS) + author} | about | {"text": text, "status": "ok"})
    return pd.DataFrame(rows)


def likelihoods(of: pd.DataFrame, draw: np.random.Generator, lost: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the records of likelihoods, and log-probabilities per character, a row per text, a column per model.

    Texts share what makes them easy for anybody: within an author two candidates correlate at about .8.
    """
    author, length = of["author"].map(MODELS.index).to_numpy(), np.log(of["text"].str.len().to_numpy())
    prompt = draw.normal(size=of["prompt_id"].nunique())[pd.factorize(of["prompt_id"])[0]]
    ease = 0.35 * (length - length.mean()) / length.std() + 0.94 * draw.normal(size=len(of))
    parts, shown = [], None
    for show in (True, False):
        noise = 0.5 * prompt[:, None] + 0.75 * ease[:, None] + 0.43 * draw.normal(size=(len(of), len(MODELS)))
        each = np.minimum(MEAN[author] + SPREAD[author] * noise - 0.04 * (not show), -0.02)
        shown = each if show else shown
        for k, candidate in enumerate(MODELS):
            found = of[["text_id", "prompt_id", "sample", "author"]].assign(
                candidate=candidate, logprob=(each[:, k] * of["text"].str.len()).round(4),
                tokens=(of["text"].str.len() / 4.2).astype(int) + 1, characters=of["text"].str.len(),
                status="ok", show_prompt=show, served_model="simulated",
            )  # fmt: skip
            found.loc[draw.random(len(of)) < lost, "logprob"] = np.nan
            parts.append(found)
    return pd.concat(parts, ignore_index=True), shown


def standard(values, prompt) -> np.ndarray:
    """Return values less their prompt's mean, at a standard deviation of 1."""
    values = pd.Series(np.asarray(values, float))
    values = values - values.groupby(prompt).transform("mean")
    return (values / values.std()).to_numpy()


def follows(kind: str, e: int, of: pd.DataFrame, chances: np.ndarray, draw) -> np.ndarray:
    """Return what the words of a model follow, standardised within prompts."""
    prompt = of["prompt_id"].to_numpy()
    each = np.column_stack([standard(column, prompt) for column in chances.T])
    peers = [k for k in range(len(PLAIN)) if k != min(e, 2)]
    source = {"own": each[:, e], "peers": each[:, peers].mean(1), "length": np.log(of["text"].str.len())}
    source["habit"] = draw.normal(size=len(of))
    source["author"] = draw.normal(size=len(MODELS))[of["author"].map(MODELS.index)]  # likes one author's texts
    source["ease"] = each.mean(1)  # what makes a text likely for anybody
    return standard(source[kind], prompt)


def answers(of, chances, kinds, draw, asked=ASKED, strength=STRENGTH, lost=0.01) -> pd.DataFrame:
    """Return the prediction records of all evaluators under all conditions."""
    prompt, parts = of["prompt_id"].to_numpy(), []
    liking = standard(follows("ease", 0, of, chances, draw) + 2 * draw.normal(size=len(of)), prompt)
    for e, kind in enumerate(kinds):
        content, noise = follows(kind, e, of, chances, draw), draw.normal(size=len(of))
        at_prompt = draw.normal(size=len(of))[pd.factorize(prompt)[0]]
        for stage, change in asked.items():
            known = strength if change.get("show_prompt") and stage not in ("about", "rating") else 0
            own_part = noise if known else draw.normal(size=len(of))
            z = known * content + np.sqrt(1 - known**2) * own_part + 0.3 * draw.normal(size=len(of))
            z = 0.6 * liking + draw.normal(size=len(of)) if stage == "rating" else z
            yes = {"constrained": 1.5}.get(change.get("answer"), -4) + (4 if stage == "rating" else 0)
            score = 1 / (1 + np.exp(-(yes + 1.5 * z + at_prompt)))
            condition = {"answer": "free", "told": True, "show_prompt": False, "temperature": 0.0} | change
            claim = np.array([None] * len(of), object) if "about" in change else score > 0.5
            found = of[["text_id", "prompt_id", "sample"]].assign(
                true_model=of["author"], evaluator_model=MODELS[e], task_type="binary_self", predicted_self=claim,
                score=score.round(6), condition=[{"question": "authored"} | condition] * len(of), status="ok",
                served_model="simulated",
            )  # fmt: skip
            found.loc[draw.random(len(of)) < lost, "score"] = np.nan
            parts.append(found)
    return pd.concat(parts, ignore_index=True)


def write_fleet(folder: Path, prompts: int, seed: int, kinds, end=".jsonl", texts_seed=None, **how) -> dict:
    """Write a fleet's three files, and return the notebook's parameters that read them."""
    draw = np.random.default_rng([seed, 2])
    of = texts(prompts, seed if texts_seed is None else texts_seed)
    chances, each = likelihoods(of, draw, 0.005)
    said = answers(of, each, kinds, draw, **how)
    folder.mkdir(parents=True, exist_ok=True)
    names = {"texts": of, "predictions_binary_self": said, "likelihoods": chances}
    for name, frame in names.items():
        frame.to_json(folder / f"{name}{end}", orient="records", lines=True)
    given = [str(folder / f"{name}{end}") for name in names]
    return {"texts": given[0], "predictions": [given[1]], "likelihoods": [given[2]], "out": str(folder / "out")}


def analysed(parameters: dict, until: str = "") -> dict:
    """Run the notebook's own cells, the parameters set as papermill does, until a name is known; return all names."""
    scope = {"__name__": "cells", "display": lambda *_: None}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type == "code" and until not in scope:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(cell.source, cell.id, "exec"), scope)
            if "parameters" in cell.metadata.get("tags", []):
                scope |= parameters
    return scope


def remembered(texts, labels, groups, kept={}):  # noqa: B006
    """Fit the classifier of style to the same texts once."""
    key = hash((*texts, *groups))
    if key not in kept:
        kept[key] = FITTED(texts, labels, groups)
    return kept[key].copy()


def rotated(seed: int) -> list[str]:
    """Return the kind of each model, so that over the seeds every model is of every kind."""
    return [KINDS[(k + seed) % len(KINDS)] for k in range(len(MODELS))]


def told_apart(seeds=range(1, 11), prompts: int = 120) -> pd.DataFrame:
    """Return what the whole notebook says of each model of ten fleets, beside what is true."""
    rows = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            said = analysed(write_fleet(Path(folder), prompts, seed, rotated(seed)))["follows"]
        for name, kind in zip(MODELS, rotated(seed), strict=True):
            rows.append({"seed": seed, "evaluator": name, "truth": kind, "said": SAID.get(said[name], said[name])})
    return pd.DataFrame(rows)


def light(kind: str, strength: float, fleets: int, prompts: int = 120) -> dict:
    """Return how often the primary outcomes are found where all models are of one kind.

    Over all four evaluators, though a persona's p is not corrected; `any_of_six` is of the family alone, under habit,
    where every test is of a true null.
    """
    asked, found = {name: ASKED[name] for name in ("shown", "rating")}, []
    stats.out_of_fold = remembered
    for seed in range(1000, 1000 + fleets):
        with tempfile.TemporaryDirectory() as folder:
            how = {"asked": asked, "strength": strength, "texts_seed": seed % 5}
            given = write_fleet(Path(folder), prompts, seed, [kind] * len(MODELS), **how)
            scope = analysed(given, until="verdicts")
            found.append(scope["verdicts"].assign(seed=seed))
    found = pd.concat(found)
    q15, tested = found.loc[PLAIN[2]], found.loc[PLAIN]  # a persona is not in the family
    any_of = tested.groupby("seed")[["a_holm", "b_holm"]].min().min(axis=1) < 0.05 if kind == "habit" else pd.Series()
    rows = {
        "words_follow": kind,
        "strength": strength,
        "fleets": fleets,
        "prompts": prompts,
        "any_of_six": any_of.mean(),
    }
    for suffix, table in (("", found), ("_qwen_1_5b", q15)):
        rows |= {f"auc{suffix}": table["auc"].mean(), f"privileged{suffix}": table["privileged"].mean()}
        rows |= {f"{k}_rejected{suffix}": (table[f"{k}_p"] < 0.05).mean() for k in "ab"}
    return rows | {"as_own": found["as_own"].mean()}


def check() -> pd.DataFrame:
    """Return the rows of words_and_weights.csv: whole fleets told apart, then light ones."""
    found = []
    for seeds in (range(1, 11), range(11, 21)):  # the rule for `follows` was chosen on the first ten
        said = told_apart(seeds)
        wrong = said[said["truth"] != said["said"]]
        print(wrong.to_string() if len(wrong) else "none wrong", flush=True)
        row = {"words_follow": "one of each", "strength": STRENGTH, "fleets": len(seeds), "prompts": 120}
        row["seeds"] = f"{seeds[0]} to {seeds[-1]}"
        found.append(row | {"told_apart": len(seeds) - wrong["seed"].nunique(), "models_wrong": len(wrong)})
    plan = [("habit", 0, 100), ("peers", STRENGTH, 100), ("author", STRENGTH, 40), ("ease", STRENGTH, 40)]
    for each in plan + [("own", strength, 40) for strength in (0.2, 0.3, STRENGTH, 0.6)]:
        found.append(light(*each))
        print(found[-1], flush=True)
    return pd.DataFrame(found)


if __name__ == "__main__":
    if sys.argv[1:] == ["fleet"]:
        write_fleet(FOLDER / "words_and_weights", 40, 0, KINDS, ".jsonl.xz")
    else:
        check().to_csv(FOLDER / "words_and_weights.csv", index=False, float_format="%.3f")
