"""Logs of other tools: those of Inspect AI read and measured, and ours written in its form or as Every Eval Ever.

Both forms are read tolerantly: a field that is not named here is passed over.
"""

import contextlib
import hashlib
import json
import math
import re
import uuid
import zipfile
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module, metadata
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from selfeval import records
from selfeval.asking.bounds import check_zip
from selfeval.errors import InputError, check_one_of
from selfeval.figures.tables import Estimates, in_order
from selfeval.paths import write_whole
from selfeval.stats.contrasts import paired_labels
from selfeval.stats.engine import Function, Rate, Settings, detectable_difference, ratio
from selfeval.stats.table import CHANGE, COLUMNS, INVERTED, Measure, adjust_p, write
from selfeval.stats.tallies import conditions, varying_parts

LETTERS = {"C": 1, "I": 0, "P": 0.5, "N": math.nan, "yes": 1, "no": 0, "true": 1, "false": 0}  # as Inspect reads them
CLUSTER = "selfeval_cluster"  # in the metadata of a log that we wrote: the field of its samples that was sampled
USAGE = {"prompt": "input_tokens", "completion": "output_tokens"}
SOURCE = {"source_type": "evaluation_run", "source_organization_name": "unknown", "evaluator_relationship": "other"}
HOSTED = {"deployment_type": "unknown", "model_availability": "unknown"}
WORSE = re.compile("no_answer|error_rate|false|susceptib")  # statistics of which less is better


# Inspect logs in ------------------------------------------------------------------------------------------------------


def read_log(path: Path) -> dict | None:
    """Return a log of Inspect AI (`.json`, `.eval`) with its samples, None for another file that can be read."""
    if path.suffix == ".eval" and path.is_file():
        check_zip(path)
    try:
        log = _unzipped(path) if path.suffix == ".eval" else json.loads(path.read_text(encoding="utf-8-sig"))
    except NotImplementedError as error:
        raise InputError(f"{path} needs Python 3.14 or `zipfile-zstd`; or: inspect log convert --to json") from error
    except Exception as error:  # all that the readers of somebody's archive raise
        raise InputError(f"{path} cannot be read as a log of Inspect AI ({error}); write it again.") from error
    return log if isinstance(log, dict) and isinstance(log.get("eval"), dict) else None


def _unzipped(path: Path) -> dict:
    """Return what an `.eval` file holds; one whose run was stopped has no header yet."""
    with contextlib.suppress(ImportError):
        import_module("zipfile_zstd")  # teaches zipfile what recent versions write
    with zipfile.ZipFile(path) as file:
        names = dict.fromkeys(file.namelist())
        log = json.loads(file.read("header.json" if "header.json" in names else "_journal/start.json"))
        return log | {"samples": [json.loads(file.read(name)) for name in names if name.startswith("samples/")]}


records.TABLES[".eval"] = lambda path: records.logged(read_log(path))  # those that we wrote are predictions


def read_logs(source, cluster: str = "") -> tuple[pd.DataFrame, list[str]]:
    """Return the scores of Inspect logs, one row per sample, epoch and scorer, and sentences on what was met.

    source: a file, a folder, or several. cluster: a field of the samples' metadata. `value` is NaN for no answer.
    """
    logs = [*_logs(source)]
    frame = pd.DataFrame([row for path, log in logs for row in _scores(path, log, cluster)])
    unread = {*frame["scorer"][np.isinf(frame["value"])]} if len(frame) else set()
    if not len(frame) or unread == {*frame["scorer"]}:
        raise InputError(f"{source} has no numeric score, nor C, I, P or N; score it by `inspect score` first.")
    same = ["run", "model", "task", "sample", "epoch", "scorer"]
    moments = pd.to_datetime(frame["created"], utc=True, format="ISO8601", errors="coerce")  # hosts differ in offset
    latest_first = moments.sort_values(ascending=False, kind="stable").index
    again = frame.loc[latest_first].duplicated(same).sort_index()
    invalid = frame["invalid"] & ~again
    if (invalid | again).all():
        raise InputError(f"All samples in {source} are marked as invalidated, so nothing is left; run them anew.")
    runs = frame[~again].groupby(["model", "task", "made_with"])["run"].nunique().loc[lambda n: n > 1]
    versions = " and ".join(sorted({str(log.get("version", "unknown")) for _, log in logs}))
    told = [f"Logs of Inspect AI, version {versions}: {len(logs)}."]
    told += [sentence for path, log in logs for sentence in _remarks(path, log)]
    told += [f"Scorers that give no numbers are left out: {', '.join(sorted(unread))}."] * bool(unread)
    told += [f"{again.sum()} scores are in two logs, as after a retry, and the later count."] * bool(again.any())
    if invalid.any():
        samples = frame[invalid].drop_duplicates(["log", "sample", "epoch"])
        told.append(f"Samples that are marked as invalidated are left out: {len(samples)}.")
    told += [f"{n} logs of {task!r} by {model!r} count as more epochs." for (model, task, _), n in runs.items()]
    kept = frame[~again & ~invalid & ~frame["scorer"].isin(unread)]
    return kept.drop(columns="invalid").reset_index(drop=True), told


def _logs(source) -> Iterator[tuple[Path, dict]]:
    """Yield the logs of files and folders; in a folder, other files are passed over."""
    for path in map(records.path_to_read, [source] if records.is_file(source) else source):
        files = sorted([*path.rglob("*.json"), *path.rglob("*.eval")]) if path.is_dir() else [path]
        found = [(file, log) for file in files if (log := read_log(file))]
        if not found:
            raise InputError(f"{path} is or holds no log of Inspect AI; name a `.json` or `.eval` that it wrote.")
        yield from found


def _remarks(path: Path, log: Mapping) -> Iterator[str]:
    """Say where a log's run did not end well, and whether samples are missing."""
    there, planned = len(log.get("samples") or ()), (log.get("results") or {}).get("total_samples") or 0
    if there and not any(sample.get("scores") for sample in log["samples"]):
        yield f"{path.name}: none of its {there} samples has a score, so it is left out; score it by `inspect score`."
    elif (status := log.get("status", "started")) != "success":
        yield f"{path.name}: the run's status is {status!r}; the {there} samples that it has are counted."
    elif there < planned:
        yield f"{path.name}: {there} of {planned} samples are in the log."


def _scores(path: Path, log: Mapping, cluster: str) -> Iterator[dict]:
    """Yield the scores of a log; a sample without one that others have counts as no answer."""
    spec, samples = log["eval"], log.get("samples") or []
    field, found = cluster or (spec.get("metadata") or {}).get(CLUSTER, ""), [*map(_values, samples)]
    scorers = dict.fromkeys(name for values in found for name in values)
    given = {"solver": spec.get("solver")} | (spec.get("solver_args") or {}) | (spec.get("task_args") or {})
    made_with = ";".join(f"{name}={value}" for name, value in sorted(given.items()) if value is not None)
    for number, (sample, values) in enumerate(zip(samples, found, strict=True), 1):
        name, told = str(sample.get("id", number)), sample.get("metadata") or {}
        told = told.get("selfeval", told) if field else {"": name}
        if told.get(field) is None:
            raise InputError(f"{path}: sample {name} has no {field!r} in its metadata; change `cluster`.")
        about = {"model": spec.get("model") or "", "task": spec.get("task") or "", "sample": name, "log": str(path)}
        about |= {"epoch": sample.get("epoch", 1), "cluster": str(told[field]), "unit": field.removesuffix("_id")}
        about |= {"run": spec.get("task_id") or str(path), "created": spec.get("created") or "", "made_with": made_with}
        about["invalid"] = bool(sample.get("invalidation"))  # by `inspect log` or its API, with who and why
        yield from ({**about, "scorer": scorer, "value": _number(values.get(scorer))} for scorer in scorers)


def _values(sample: Mapping) -> dict:
    """Return {scorer: value} of a sample; a value with named parts is a scorer for each."""
    scores = {name: score.get("value") for name, score in (sample.get("scores") or {}).items()}
    parts = {f"{a}.{b}": part for a, value in scores.items() if isinstance(value, dict) for b, part in value.items()}
    return {name: value for name, value in scores.items() if not isinstance(value, dict)} | parts


def _number(value) -> float:
    """Return a score as a number: NaN for no answer, infinite where it is no number."""
    with contextlib.suppress(TypeError, ValueError):
        return math.nan if value is None else float(LETTERS.get(str(value), LETTERS.get(str(value).lower(), value)))
    return math.inf


def score_tables(frame: pd.DataFrame, level: float = 0.95) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rates or mean scores per model, task and scorer, and every two models' difference, paired by cluster.

    Logs whose task or solver had other arguments are other conditions. frame: of `read_logs`. Scores of 0 and 1
    alone are a `rate`, others a `mean_score`, within 0 and 1 if all are. `detectable` is the difference between two
    models that four of five such runs would find, by the spread of theirs; in the first table the largest of them.
    Pairs are over what both answered, with a note where that is less.
    """
    tables, pairs, differs = [], [], varying_parts(frame["made_with"].unique())
    for (task, made_with, scorer), part in frame.groupby(["task", "made_with", "scorer"], sort=False):
        how = Settings(level=level, unit=part["unit"].iloc[0] or "sample", few=40)
        about = {"task": task, "condition": ";".join(filter(None, [f"scorer={scorer}", differs[made_with]]))}
        names, values = np.array(in_order(part["model"]), object), part["value"].dropna()
        name = "rate" if values.isin([0, 1]).all() else "mean_score"
        mean = Rate.of if name == "rate" else partial(_mean, (0, 1) if values.between(0, 1).all() else None)
        each = part.groupby(["cluster", "model"])["value"]
        total, n, asked = (each.agg(by).unstack(fill_value=0)[names].to_numpy() for by in ("sum", "count", "size"))
        gaps = []
        for pair in map(list, combinations(range(len(names)), 2)):
            both = (n[:, pair] > 0).all(1)
            if (k := both.sum()) > 1:
                one, two = (mean(total[both, at], n[both, at]) for at in pair)
                gap, notes = one - two, [((n[~both][:, pair] > 0).any(), f"common_{how.unit}s")]
                found = Measure(name, gap, {"evaluator": " - ".join(names[pair])}, test=INVERTED, notes=notes)
                least = detectable_difference(k, sd=math.sqrt(gap.variance * k) or math.nan, t=k < how.few)
                gaps.append(write([found], how, **about).assign(detectable=float(least)))
        found = Measure(name, mean(total, n), {"evaluator": names})
        none = Measure("no_answer_rate", Rate.of(asked - n, asked), {"evaluator": names})
        table, least = write([found, none], how, **about), max((gap["detectable"][0] for gap in gaps), default=math.nan)
        tables.append(table.assign(detectable=table["statistic"].map({name: least})))
        pairs += gaps
    table = pd.concat(tables, ignore_index=True)
    return table, adjust_p(pd.concat(pairs or [table.head(0)], ignore_index=True), ["task", "condition"], compared=True)


def log_differences(first: pd.DataFrame, second: pd.DataFrame, level: float = 0.95) -> tuple[pd.DataFrame, list[str]]:
    """Return each model's first minus second score of two sets of logs, paired by cluster, and sentences.

    first, second: of `read_logs`. Only logs whose task and solver had the same arguments are compared, or the only ones
    of a task.
    """
    named = {"first result": first, "second result": second}
    parts, told = [], []
    for task in in_order([*first["task"], *second["task"]]):
        of_task = [frame[frame["task"] == task] for frame in named.values()]
        pairs, sentences = paired_labels(task, *(sorted(frame["made_with"].unique()) for frame in of_task))
        told += sentences
        for made_with in pairs:
            sides = [
                frame[frame["made_with"] == given].assign(made_with=made_with[0], side=name)
                for frame, given, name in zip(of_task, made_with, named, strict=True)
            ]
            joined = pd.concat(sides, ignore_index=True)
            for model, of_model in joined.groupby("model", sort=False):
                if of_model["side"].nunique() == 2:
                    gaps = score_tables(of_model.assign(model=of_model["side"]), level)[1]
                    parts.append(gaps.assign(evaluator=model))
    if not parts:
        return pd.DataFrame(columns=[*COLUMNS, *CHANGE]), told
    change = dict(zip(CHANGE, ("result", "second result", "first result"), strict=True))
    table = pd.concat(parts, ignore_index=True).assign(**change)
    return adjust_p(table, ["task", "condition", "statistic"], compared=True), told


def _mean(within: tuple[float, float] | None, total: np.ndarray, n: np.ndarray) -> Function:
    """Return the mean of scores from their sums and numbers by cluster, shapes (clusters, ...)."""
    return Function.of(np.stack([total, n], -1), lambda s: ratio(s[..., 0], s[..., 1]), n.sum(0), within=within)


# logs out -------------------------------------------------------------------------------------------------------------


# Which fields of records are what in a log. shown: in place of messages, where records have none. about: what a sample
# is, over which repeats are epochs.
Form = namedtuple("Form", "model task cluster shown target answer value about")
FORMS = {
    "recognition": Form("evaluator_model", "task_type", "prompt_id", "text_preview", "true_model", "predicted_self",
                        "is_correct", ("text_id", "other_text_id", "position")),
    "identity": Form("model", "source", "template_id", "family", "truth", "stance",
                     "passed", ("template_id", "arm", "control_of", "turn")),
    "jury": Form("juror", "arm", "conversation_id", "conversation_id", "source", "score",
                 "score", ("conversation_id", "turn", "round", "position")),
}  # fmt: skip


def save_as(form: str, result, folder: Path) -> Path:
    """Write what is behind a result (or records) in the form of another tool, into a folder; return the folder."""
    check_one_of("form", form, SAVED)
    measured = isinstance(result, Estimates) and result.records is not None
    frame = result.records if measured else pd.DataFrame(result)
    kind = next((kind for kind, each in FORMS.items() if {each.model, each.value} <= {*frame}), "")
    if not (kind if form == "inspect" else measured):
        raise InputError(f"{form!r} needs answers, replies or verdicts: give `save` these, or what was measured on it.")
    SAVED[form](kind or result.kind, result, [*_runs(kind, frame)] if kind else [], folder)
    return folder


def _runs(kind: str, frame: pd.DataFrame) -> Iterator[tuple[str, str, list[dict]]]:
    """Yield model, task and samples, as an Inspect log has them, of each model, task and condition."""
    form, rows, frame = FORMS[kind], records.rows_of(frame), frame.reset_index(drop=True)
    put = conditions(frame if kind == "recognition" else frame[[]]).astype(str)
    parts = frame.groupby([form.model, form.task, put.map(varying_parts(put.unique()))])
    for (model, task, said), places in parts.groups.items():
        seen: dict[str, int] = {}
        yield model, _slug(f"{kind} {task} {said}"), [_sample(form, model, rows[at], seen) for at in places]


def _sample(form: Form, model: str, row: dict, seen: dict[str, int]) -> dict:
    """Return a record as a sample of an Inspect log; what has no answer is NaN, with the reason."""
    parts = [row[name] for name in form.about if row.get(name) is not None]
    ident = " ".join(f"{part:.0f}" if isinstance(part, float) else str(part) for part in parts)
    seen[ident] = seen.get(ident, 0) + 1
    asked = row.get("messages") or [{"role": "user", "content": str(row[form.shown])}]
    reply, status, value = row["reply"], row["status"], row[form.value]
    said = [{"role": "assistant", "content": reply, "source": "generate"}] if reply and status != "error" else []
    answer = next((str(row[name]) for name in ("predicted_model", form.answer) if row.get(name) is not None), None)
    score = {"value": "IC"[value] if isinstance(value, bool) else _number(value), "answer": answer}
    if value is None:
        why = "this question has no right answer" if status == "ok" else f"no answer: {status}"
        score |= {"explanation": why, "metadata": {"status": status, "reason": why}}
    used = {long: (row.get("usage") or {}).get(name) or 0 for name, long in USAGE.items()}
    choices = [{"message": each, "stop_reason": {"length": "max_tokens"}.get(status, "stop")} for each in said]
    output = {"model": model, "choices": choices, "usage": used | {"total_tokens": sum(used.values())}}
    sample = {"id": ident, "epoch": seen[ident], "input": asked, "target": str(row[form.target]), "output": output}
    return sample | {"messages": asked + said, "scores": {form.value: score}, "metadata": {"selfeval": row}}


def _slug(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-") or "unknown"


def _ident(value) -> str:
    """Return an id that is the same for the same value, in the form of a UUID of version 4."""
    return str(uuid.UUID(bytes=hashlib.sha256(json.dumps(value, default=str).encode()).digest()[:16], version=4))


def _save_inspect(kind: str, _, runs: Sequence, folder: Path) -> None:
    """Write an Inspect log for each model, task and condition; the same run again takes the place of its file."""
    now, name = datetime.now(UTC).isoformat(timespec="seconds"), FORMS[kind].value
    for model, task, samples in runs:
        ident, ids = _ident([model, task, samples]).replace("-", ""), [*dict.fromkeys(each["id"] for each in samples)]
        values = pd.Series([_number(each["scores"][name]["value"]) for each in samples])
        score = {"name": name, "scorer": name, "metrics": {"mean": {"name": "mean", "value": float(values.mean())}}}
        score |= {"scored_samples": int(values.count()), "unscored_samples": int(values.isna().sum())}
        counts = {"total_samples": len(samples), "completed_samples": len(samples)}
        spec = {"created": now, "task": task, "model": model, "packages": {"selfeval": metadata.version("selfeval")}}
        spec |= dict.fromkeys(("task_id", "run_id", "eval_id"), ident) | {"metadata": {CLUSTER: FORMS[kind].cluster}}
        epochs = max(each["epoch"] for each in samples)
        spec |= {"dataset": {"name": kind, "samples": len(ids), "sample_ids": ids}, "config": {"epochs": epochs}}
        log = {"version": 2, "status": "success", "eval": spec, "plan": {}, "results": counts | {"scores": [score]}}
        place = folder / f"{now.replace(':', '-')}_{task.replace('_', '-')}_{ident}.json"  # as Inspect calls its logs
        file = next(folder.glob(f"*_{ident}.json"), place)
        log |= {"stats": {}, "samples": samples}
        write_whole(file, json.dumps(log, ensure_ascii=False, indent=1, default=str))


def _save_every_eval_ever(kind: str, result: Estimates, runs: Sequence, folder: Path) -> None:
    """Write a record per model with its estimates, and beside it its answers where these are right or wrong."""
    now, rows = f"{datetime.now(UTC).timestamp():.0f}", pd.DataFrame(result).dropna(subset="estimate")
    jury = {}
    if kind == "jury":  # whose subject is the agent
        agents = sorted({*result.records["agent"].dropna()} - {"human", ""})
        rows = rows[rows["evaluator"] == ""].assign(evaluator=" + ".join(agents) or "unknown")
        judges = [{"model_info": _model(each, result.names)} for each in sorted({model for model, _, _ in runs})]
        jury = {"llm_scoring": {"judges": judges, "input_prompt": runs[0][2][0]["input"][0]["content"]}}
    for model, part in rows.groupby("evaluator", sort=False):
        about = {"schema_version": "0.3.0", "evaluation_id": f"selfeval-{kind}/{model}/{now}"}
        record = about | {"retrieved_timestamp": now, "source_metadata": SOURCE}
        record["model_info"] = _model(model, result.names)
        record["eval_library"] = {"name": "selfeval", "version": metadata.version("selfeval")}
        record["evaluation_results"] = [_estimate(kind, row, jury) for row in part.to_dict("records")]
        developer, _, name = model.rpartition("/")
        place = f"data/selfeval-{kind}/{_slug(developer)}/{_slug(name)}/{_ident([kind, model])}"
        mine = [(task, sample) for who, task, samples in runs if who == model for sample in samples]
        if kind in ("recognition", "identity"):
            record["detailed_evaluation_results"] = {"format": "jsonl", "file_path": f"{place}_samples.jsonl"}
            answers = (about | {"model_id": model, "evaluation_name": task} | _instance(one) for task, one in mine)
            records.write_jsonl(folder / f"{place}_samples.jsonl", answers)
        write_whole(folder / f"{place}.json", json.dumps(record, ensure_ascii=False, indent=1))


def _model(name: str, names: Mapping[str, str]) -> dict:
    return {"id": name, "name": names.get(name, name), "additional_details": HOSTED}


def _estimate(kind: str, row: Mapping, jury: Mapping) -> dict:
    """Return an estimate as Every Eval Ever has it."""
    spread, worse = {"num_samples": int(row["n"])}, bool(WORSE.search(row["statistic"]))
    if row["low"] == row["low"]:
        ends = {"lower": row["low"], "upper": row["high"], "confidence_level": row["level"], "method": row["method"]}
        spread |= {"confidence_interval": ends}
    told = {name: str(row[name]) for name in ("author", "policy", "clusters", "cluster_unit", "conclusion", "note")}
    return {
        "evaluation_name": " ".join(filter(None, [kind, row["task"], row["condition"]])),
        "source_data": {"dataset_name": f"selfeval {kind}", "source_type": "other"},
        "metric_config": {"metric_id": row["statistic"], "lower_is_better": worse} | jury,
        "score_details": {"score": row["estimate"], "uncertainty": spread, "details": told},
    }


def _instance(sample: Mapping) -> dict:
    """Return an answer as Every Eval Ever has it; where there is none, it has to be false, and `error` says so."""
    [score], asked = sample["scores"].values(), sample["input"]
    read = {"turn_idx": 0, "source": "output.raw", "extraction_method": "custom", "is_terminal": True}
    return {
        "sample_id": f"{sample['id']} #{sample['epoch']}",
        "interaction_type": "single_turn",
        "input": {"raw": "\n\n".join(each["content"] for each in asked), "reference": [sample["target"]]},
        "output": {"raw": [each["content"] for each in sample["messages"][len(asked) :]]},
        "answer_attribution": [read | {"extracted_value": score["answer"]}] if score["answer"] else [],
        "evaluation": {"score": float(score["value"] == "C"), "is_correct": score["value"] == "C"},
        "error": score.get("explanation"),
    }


SAVED = {"inspect": _save_inspect, "every-eval-ever": _save_every_eval_ever}
