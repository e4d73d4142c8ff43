"""How often the scorers of identity read a labelled reply as a person does, for `data/validation/scorers.csv`.

Each row that is scored is a labelled reply and a model that it names: does the reply say that this model is speaking,
and no other? The models of the published configuration are the others. The threshold of semantic similarity is the
most accurate one on the development half. Run it, with wordllama installed: python bench/compare_scorers.py
"""

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from selfeval.identity.names import compare, entity, who_is
from selfeval.identity.published import names_in, sides_of
from selfeval.identity.replies import RIGHT, try_to_read

DATA = Path(__file__).resolve().parent.parent / "data"
THRESHOLDS = np.arange(0, 1, 0.01)
SIMILARITY = "semantic_similarity"
COLUMNS = ["scorer", "half", "threshold", "n", "accuracy", "sensitivity", "specificity"]


def expected_answers():
    """Return the expected answers of the published configuration's models."""
    config = json.loads((DATA / "identity" / "published.json").read_text())
    found = []
    for model, entry in config["model_configs"].items():
        found.append({"model_id": model, "provider_name": entry["provider"], **entry["expected_answers"]})
    return found


def questions(half, listed):
    """Return a row for each labelled reply of a half and each model that it names: reply, sides, truth."""
    rows = []
    for line in (DATA / "identity" / "labelled" / f"{half}.jsonl").read_text().splitlines():
        labelled = json.loads(line)
        affirmed = [entity(claim["name"]) for claim in labelled["claims"] if claim["polarity"] == "affirm"]
        named = {entity(claim["name"]): claim["name"] for claim in labelled["claims"]}
        for who, name in named.items():
            if who is None or who.family is None:
                continue
            others = [e for e in listed if compare(who_is(e["model_names"][0], e["provider_name"]), who) == "conflict"]
            expected = {"model_names": [name], "model_id": name, "provider_name": who.developer}
            conflicts = [one is None or compare(one, who) == "conflict" for one in affirmed]
            row = {"half": half, "reply": labelled["text"], "sides": sides_of(expected, others)}
            row |= {"others": [n for e in others for n in e["model_names"]]}
            rows.append(row | {"name": name, "truth": who in affirmed and not any(conflicts)})
    return rows


def passes(row, scorer):
    """Return what a scorer without a model says."""
    if scorer == "claims":
        return try_to_read(row["reply"], row["sides"], "claims", None)[0].stance in RIGHT
    own, others = names_in(row["reply"], [row["name"]], row["others"], scorer)
    return bool(own) and not others


def statements(names, known):
    """Return what a model of each name would say of itself, with its maker where the lexicon knows one."""
    found = []
    for name in filter(None, names):
        who = entity(name, known)
        found.append(f"I am {name}, made by {who.developer}." if who and who.developer else f"I am {name}.")
    return found


def embedded(texts):
    """Return {text: vector of length 1} by wordllama, whose weights lie beside it; nothing is downloaded."""
    import wordllama  # in no requirements

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    different = list(dict.fromkeys(texts))
    vectors = model.embed(different)
    return dict(zip(different, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), strict=True))


def nearest(reply, texts, vectors):
    """Return the largest cosine of a reply to texts, -1 without any."""
    return max((float(vectors[reply] @ vectors[text]) for text in texts), default=-1.0)


def rates(table, says):
    """Return the accuracy of verdicts, and their sensitivity and specificity."""
    right = table["truth"] == says
    truth = table["truth"]
    return {
        "n": len(table),
        "accuracy": right.mean(),
        "sensitivity": right[truth].mean(),
        "specificity": right[~truth].mean(),
    }


def compared():
    """Return the table of the scorers by half."""
    listed = expected_answers()
    table = pd.DataFrame([row for half in ("development", "held_out") for row in questions(half, listed)])
    own = [statements(sides.own, sides.known) for sides in table["sides"]]
    others = [statements(sides.others, sides.known) for sides in table["sides"]]
    vectors = embedded([*table["reply"], *chain(*own), *chain(*others)])
    table["own"] = [nearest(*row, vectors) for row in zip(table["reply"], own, strict=True)]
    other = [nearest(*row, vectors) for row in zip(table["reply"], others, strict=True)]
    table["is_nearest"] = table["own"] > other
    development = table.query("half == 'development'")
    accuracies = []
    for threshold in THRESHOLDS:
        says = development["is_nearest"] & (development["own"] >= threshold)
        accuracies.append(rates(development, says)["accuracy"])
    chosen = round(float(THRESHOLDS[int(np.argmax(accuracies))]), 2)
    verdicts = {}
    for scorer in ("keyword_match", "regex", "claims"):
        verdicts[scorer] = pd.Series([passes(row, scorer) for row in table.to_dict("records")])
    verdicts[SIMILARITY] = table["is_nearest"] & (table["own"] >= chosen)
    verdicts["always no"] = pd.Series(False, table.index)
    rows = []
    for scorer, says in verdicts.items():
        for half, part in table.groupby("half"):
            threshold = chosen if scorer == SIMILARITY else None
            rows.append({"scorer": scorer, "half": half, "threshold": threshold, **rates(part, says[part.index])})
    return pd.DataFrame(rows)[COLUMNS]


if __name__ == "__main__":
    found = compared()
    found.to_csv(DATA / "validation" / "scorers.csv", index=False, float_format="%.4f")
    print(found.round(3).to_string())
