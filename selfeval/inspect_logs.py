"""Logs of Inspect AI: read and measured, and our records written so that `inspect view` opens them.

Logs are read tolerantly: a field that is not named here is passed over.
"""

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from selfeval.bounds import check_zip
from selfeval.condition import conditions, varying_parts
from selfeval.errors import InputError, check_one_of
from selfeval.figures.estimates import Estimates
from selfeval.paths import write_whole
from selfeval.recognition.contrasts import paired_labels
from selfeval.records import tables as record_files
from selfeval.results import in_order
from selfeval.statistics.intervals import Function, Rate, ratio
from selfeval.statistics.resampling import Settings
from selfeval.statistics.table import CHANGE, COLUMNS, INVERTED, Measure, adjust_p, write

# As Inspect reads them.
LETTERS = {
    "C": 1,
    "I": 0,
    "P": 0.5,
    "N": math.nan,
    "yes": 1,
    "no": 0,
    "true": 1,
    "false": 0,
}
# In the metadata of a log that we wrote: the field of its samples that was sampled.
CLUSTER = "selfeval_cluster"
# Clusters below which intervals use t.
FEW = 40
# Our status: Inspect's reason; all others are "stop".
STOP_REASONS = {"length": "max_tokens"}


# --------------------------------------------------------------------------------------------------
# Reading


def read_log(path: Path) -> dict | None:
    """Return a log of Inspect AI with its samples, None for a JSON file that is no log.

    path: a `.json`, or an `.eval`, which the package inspect-ai reads.
    """
    try:
        if path.suffix == ".eval":
            log = _eval_file(path)
        else:
            log = json.loads(path.read_text(encoding="utf-8-sig"))
    except ImportError as error:
        remedy = "pip install inspect-ai, or convert it: inspect log convert --to json"
        raise InputError(
            f"{path} is read by the package inspect-ai, which is not installed; {remedy}."
        ) from error
    except InputError:
        raise
    except Exception as error:  # all that the readers of somebody's archive raise
        raise InputError(
            f"{path} cannot be read as a log of Inspect AI ({error}); write it again."
        ) from error
    if isinstance(log, dict) and isinstance(log.get("eval"), dict):
        return log
    return None


def _eval_file(path: Path) -> dict:
    if path.is_file():
        check_zip(path)
    from inspect_ai.log import read_eval_log  # takes seconds

    return read_eval_log(str(path)).model_dump(exclude_none=True)


def _predictions_of(path: Path):
    """Return the predictions of a log that we wrote."""
    return record_files.logged(read_log(path))


record_files.TABLES[".eval"] = _predictions_of


def read_logs(source, cluster: str = "") -> tuple[pd.DataFrame, list[str]]:
    """Return the scores of Inspect logs and sentences on what was met.

    source: a file, a folder, or several. cluster: a field of the samples' metadata. The frame has
    one row per sample, epoch and scorer; `value` is NaN for no answer.
    """
    logs = list(_logs(source))
    rows = []
    for path, log in logs:
        rows += _scores(path, log, cluster)
    scorers = {row["scorer"] for row in rows}
    without_numbers = {row["scorer"] for row in rows if math.isinf(row["value"])}
    if scorers == without_numbers:
        raise InputError(
            f"{source} has no numeric score, nor C, I, P or N; score it by `inspect score` first."
        )
    frame = pd.DataFrame(rows)
    is_again = _read_before(frame)
    is_invalid = frame["invalid"] & ~is_again
    if (is_invalid | is_again).all():
        raise InputError(
            f"All samples in {source} are marked as invalidated, so nothing is left; run them anew."
        )

    versions = {str(log.get("version", "unknown")) for _, log in logs}
    told = [f"Logs of Inspect AI, version {' and '.join(sorted(versions))}: {len(logs)}."]
    for path, log in logs:
        told += _remarks(path, log)
    if without_numbers:
        told.append(
            f"Scorers that give no numbers are left out: {', '.join(sorted(without_numbers))}."
        )
    if is_again.any():
        told.append(
            f"{is_again.sum()} scores are in two logs, as after a retry, and the later count."
        )
    if is_invalid.any():
        samples = frame[is_invalid].drop_duplicates(["log", "sample", "epoch"])
        told.append(f"Samples that are marked as invalidated are left out: {len(samples)}.")
    by_design = frame[~is_again].groupby(["model", "task", "made_with"])
    runs = by_design["run"].nunique()
    for (model, task, _), number in runs[runs > 1].items():
        told.append(f"{number} logs of {task!r} by {model!r} count as more epochs.")
    has_number = ~frame["scorer"].isin(without_numbers)
    kept = frame[~is_again & ~is_invalid & has_number]
    return kept.drop(columns="invalid").reset_index(drop=True), told


def _read_before(frame: pd.DataFrame) -> pd.Series:
    """Return which scores a later log of the same run has again."""
    # Hosts differ in offset.
    created = pd.to_datetime(frame["created"], utc=True, format="ISO8601", errors="coerce")
    latest_first = created.sort_values(ascending=False, kind="stable").index
    same = ["run", "model", "task", "sample", "epoch", "scorer"]
    return frame.loc[latest_first].duplicated(same).sort_index()


def _logs(source) -> Iterator[tuple[Path, dict]]:
    """Yield the logs of files and folders; in a folder, other files are passed over."""
    if record_files.is_file(source):
        source = [source]
    for path in map(record_files.path_to_read, source):
        files = [path]
        if path.is_dir():
            files = sorted([*path.rglob("*.json"), *path.rglob("*.eval")])
        found = False
        for file in files:
            log = read_log(file)
            if log:
                found = True
                yield file, log
        if not found:
            raise InputError(
                f"{path} is or holds no log of Inspect AI; name a `.json` or `.eval` that it wrote."
            )


def _remarks(path: Path, log: Mapping) -> Iterator[str]:
    """Say where a log's run did not end well, and whether samples are missing."""
    samples = log.get("samples") or []
    results = log.get("results") or {}
    planned = results.get("total_samples") or 0
    status = log.get("status", "started")
    n = len(samples)
    has_score = [bool(sample.get("scores")) for sample in samples]
    if samples and not any(has_score):
        yield (
            f"{path.name}: none of its {n} samples has a score, so it is left out; "
            "score it by `inspect score`."
        )
    elif status != "success":
        yield (
            f"{path.name}: the run's status is {status!r}; the {n} samples that it has are counted."
        )
    elif n < planned:
        yield f"{path.name}: {n} of {planned} samples are in the log."


def _scores(path: Path, log: Mapping, cluster: str) -> Iterator[dict]:
    """Yield the scores of a log; a sample without one that others have counts as no answer."""
    spec = log["eval"]
    samples = log.get("samples") or []
    about = spec.get("metadata") or {}
    field = cluster or about.get(CLUSTER, "")
    of_log = {
        "model": spec.get("model") or "",
        "task": spec.get("task") or "",
        "log": str(path),
        "unit": field.removesuffix("_id"),
        "run": spec.get("task_id") or str(path),
        "created": spec.get("created") or "",
        "made_with": _arguments(spec),
    }
    values = [_values(sample) for sample in samples]
    scorers = {}
    for of_sample in values:
        scorers |= dict.fromkeys(of_sample)
    for number, (sample, of_sample) in enumerate(zip(samples, values, strict=True), 1):
        name = str(sample.get("id", number))
        row = {
            **of_log,
            "sample": name,
            "cluster": _cluster(path, sample, name, field),
            "epoch": sample.get("epoch", 1),
            # By `inspect log` or its API, with who and why.
            "invalid": bool(sample.get("invalidation")),
        }
        for scorer in scorers:
            yield row | {"scorer": scorer, "value": _number(of_sample.get(scorer))}


def _arguments(spec: Mapping) -> str:
    """Return what a log's task and solver were given, as "k=v;k=v"."""
    arguments = {"solver": spec.get("solver")}
    arguments |= spec.get("solver_args") or {}
    arguments |= spec.get("task_args") or {}
    parts = []
    for name, value in sorted(arguments.items()):
        if value is not None:
            parts.append(f"{name}={value}")
    return ";".join(parts)


def _cluster(path: Path, sample: Mapping, name: str, field: str) -> str:
    """Return the unit that a sample belongs to.

    It is what its metadata say in a field, without one the sample itself.
    """
    if not field:
        return name
    metadata_of_sample = sample.get("metadata") or {}
    about = metadata_of_sample.get("selfeval", metadata_of_sample)
    if about.get(field) is None:
        raise InputError(
            f"{path}: sample {name} has no {field!r} in its metadata; change `cluster`."
        )
    return str(about[field])


def _values(sample: Mapping) -> dict:
    """Return {scorer: value} of a sample; a value with named parts is a scorer for each."""
    whole = {}
    parts = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score.get("value")
        if isinstance(value, dict):
            for part, of_part in value.items():
                parts[f"{scorer}.{part}"] = of_part
        else:
            whole[scorer] = value
    return whole | parts


def _number(value) -> float:
    """Return a score as a number: NaN for no answer, infinite where it is no number."""
    if value is None:
        return math.nan
    text = str(value)
    for known in (text, text.lower()):
        if known in LETTERS:
            return float(LETTERS[known])
    with contextlib.suppress(TypeError, ValueError):
        return float(value)
    return math.inf


# --------------------------------------------------------------------------------------------------
# Measuring


def score_tables(frame: pd.DataFrame, level: float = 0.95) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rates or mean scores per model, task and scorer, and every two models' difference.

    Logs whose task or solver had other arguments are other conditions. frame: of `read_logs`.
    Scores of 0 and 1 alone are a `rate`, others a `mean_score`, within 0 and 1 if all are.
    Pairs are by cluster, over what both answered, with a note where that is less.
    """
    tables = []
    pairs = []
    differs = varying_parts(frame["made_with"].unique())
    for (task, made_with, scorer), part in frame.groupby(
        ["task", "made_with", "scorer"], sort=False
    ):
        condition = f"scorer={scorer}"
        if differs[made_with]:
            condition += f";{differs[made_with]}"
        settings = Settings(level=level, unit=part["unit"].iloc[0] or "sample", few=FEW)
        table, differences = _of_scorer(part, settings, {"task": task, "condition": condition})
        tables.append(table)
        pairs += differences
    table = pd.concat(tables, ignore_index=True)
    paired = pd.concat(pairs or [table.head(0)], ignore_index=True)
    return table, adjust_p(paired, ["task", "condition"])


def _of_scorer(
    part: pd.DataFrame, settings: Settings, labels: dict
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the table of one scorer's means, and one of each two models' difference."""
    names = np.array(in_order(part["model"]), object)
    statistic, mean = _kind_of_mean(part["value"].dropna())
    by_cluster = part.groupby(["cluster", "model"])["value"]

    def counts_of(sums: pd.Series) -> np.ndarray:
        """Return sums by cluster and model as (clusters, models)."""
        return sums.unstack(fill_value=0)[names].to_numpy()

    total = counts_of(by_cluster.sum())
    answered = counts_of(by_cluster.count())
    asked = counts_of(by_cluster.size())

    differences = []
    for first, second in combinations(range(len(names)), 2):
        first_answered = answered[:, first] > 0
        second_answered = answered[:, second] > 0
        both = first_answered & second_answered
        clusters = both.sum()
        if clusters < 2:
            continue
        of_first = mean(total[both, first], answered[both, first])
        difference = of_first - mean(total[both, second], answered[both, second])
        left_out = (first_answered != second_answered).any()
        measure = Measure(
            statistic,
            difference,
            {"evaluator": f"{names[first]} - {names[second]}"},
            test=INVERTED,
            notes=[(left_out, f"common_{settings.unit}s")],
        )
        differences.append(write([measure], settings, **labels))

    means = Measure(statistic, mean(total, answered), {"evaluator": names})
    no_answers = Measure("no_answer_rate", Rate.of(asked - answered, asked), {"evaluator": names})
    return write([means, no_answers], settings, **labels), differences


def _kind_of_mean(values: pd.Series) -> tuple:
    """Return the name of the statistic that scores allow, and the function of sums and numbers."""
    if values.isin([0, 1]).all():
        return "rate", Rate.of
    within = None
    if values.between(0, 1).all():
        within = (0, 1)
    return "mean_score", partial(_mean, within)


def _mean(within: tuple[float, float] | None, total: np.ndarray, n: np.ndarray) -> Function:
    """Return the mean of scores from their sums and numbers by cluster, shapes (clusters, ...)."""
    sums = np.stack([total, n], -1)
    return Function.of(sums, lambda s: ratio(s[..., 0], s[..., 1]), n.sum(0), within=within)


def log_differences(
    first: pd.DataFrame, second: pd.DataFrame, level: float = 0.95
) -> tuple[pd.DataFrame, list[str]]:
    """Return each model's first minus second score of two sets of logs, and sentences.

    first, second: of `read_logs`. Scores are paired by cluster. Only logs whose task and solver had
    the same arguments are compared, or the only ones of a task.
    """
    parts = []
    told = []
    for task in in_order([*first["task"], *second["task"]]):
        of_first = first[first["task"] == task]
        of_second = second[second["task"] == task]
        arguments = [sorted(side["made_with"].unique()) for side in (of_first, of_second)]
        pairs, sentences = paired_labels(task, *arguments)
        told += sentences
        for in_first, in_second in pairs:
            first_side = of_first[of_first["made_with"] == in_first]
            second_side = of_second[of_second["made_with"] == in_second]
            both = [
                first_side.assign(side="first result"),
                second_side.assign(side="second result"),
            ]
            sides = pd.concat(both, ignore_index=True)
            parts += _sides_apart(sides.assign(made_with=in_first), level)
    if not parts:
        return pd.DataFrame(columns=[*COLUMNS, *CHANGE]), told
    change = dict(zip(CHANGE, ("result", "second result", "first result"), strict=True))
    table = pd.concat(parts, ignore_index=True).assign(**change)
    return adjust_p(table, ["task", "condition", "statistic"]), told


def _sides_apart(sides: pd.DataFrame, level: float) -> Iterator[pd.DataFrame]:
    """Yield each model's difference between the two sides, as if they were two models."""
    for model, of_model in sides.groupby("model", sort=False):
        if of_model["side"].nunique() == 2:
            _, differences = score_tables(of_model.assign(model=of_model["side"]), level)
            yield differences.assign(evaluator=model)


# --------------------------------------------------------------------------------------------------
# Writing


@dataclass(frozen=True)
class Form:
    """Which fields of records are what in a log.

    shown: in place of messages, where records have none. about: what a sample is, over which
    repeats are epochs.
    """

    model: str
    task: str
    cluster: str
    shown: str
    target: str
    answer: str
    value: str
    about: tuple[str, ...]


FORMS = {
    "recognition": Form(
        model="evaluator_model",
        task="task_type",
        cluster="prompt_id",
        shown="text_preview",
        target="true_model",
        answer="predicted_self",
        value="is_correct",
        about=("text_id", "other_text_id", "position"),
    ),
    "identity": Form(
        model="model",
        task="source",
        cluster="template_id",
        shown="family",
        target="truth",
        answer="stance",
        value="passed",
        about=("template_id", "arm", "control_of", "turn"),
    ),
    "jury": Form(
        model="juror",
        task="arm",
        cluster="conversation_id",
        shown="conversation_id",
        target="source",
        answer="score",
        value="score",
        about=("conversation_id", "turn", "round", "position"),
    ),
}


def save_as(form: str, result, folder: Path) -> Path:
    """Write the records behind a result (or records) as logs of Inspect AI; return the folder."""
    check_one_of("form", form, ("inspect",))
    frame = pd.DataFrame(result)
    if isinstance(result, Estimates) and result.records is not None:
        frame = result.records
    for kind, fields in FORMS.items():
        if {fields.model, fields.value} <= set(frame):
            for model, task, samples in _runs(kind, frame):
                _write_log(kind, model, task, samples, folder)
            return folder
    raise InputError(
        f"{form!r} needs answers, replies or verdicts: "
        "give `save` these, or what was measured on it."
    )


def _runs(kind: str, frame: pd.DataFrame) -> Iterator[tuple[str, str, list[dict]]]:
    """Yield model, task and samples, as a log has them, of each model, task and condition."""
    form = FORMS[kind]
    rows = record_files.rows_of(frame)
    frame = frame.reset_index(drop=True)
    condition = pd.Series("", frame.index)
    if kind == "recognition":
        condition = conditions(frame).astype(str)
    differs = condition.map(varying_parts(condition.unique()))
    runs = frame.groupby([form.model, form.task, differs])
    for (model, task, said), places in runs.groups.items():
        seen: dict[str, int] = {}
        samples = [_sample(form, model, rows[at], seen) for at in places]
        yield model, _slug(f"{kind} {task} {said}"), samples


def _sample(form: Form, model: str, row: dict, seen: dict[str, int]) -> dict:
    """Return a record as a sample of a log; `seen` counts samples of one id, which are epochs."""
    fields = [row.get(field) for field in form.about]
    name = " ".join(_plain(value) for value in fields if value is not None)
    seen[name] = seen.get(name, 0) + 1
    asked = row.get("messages") or [{"role": "user", "content": str(row[form.shown])}]
    said = []
    if row["reply"] and row["status"] != "error":
        said = [{"role": "assistant", "content": row["reply"], "source": "generate"}]
    stop_reason = STOP_REASONS.get(row["status"], "stop")
    usage = row.get("usage") or {}
    tokens_in = usage.get("prompt") or 0
    tokens_out = usage.get("completion") or 0
    output = {
        "model": model,
        "choices": [{"message": message, "stop_reason": stop_reason} for message in said],
        "usage": {
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }
    return {
        "id": name,
        "epoch": seen[name],
        "input": asked,
        "target": str(row[form.target]),
        "output": output,
        "messages": asked + said,
        "scores": {form.value: _score(form, row)},
        "metadata": {"selfeval": row},
    }


def _plain(value) -> str:
    """Return a part of an id as text, a whole number without its decimals."""
    if isinstance(value, float):
        return f"{value:.0f}"
    return str(value)


def _score(form: Form, row: Mapping) -> dict:
    """Return a record's score as a log has it; what has no answer is NaN, with the reason."""
    value = row[form.value]
    answer = row.get("predicted_model")
    if answer is None:
        answer = row.get(form.answer)
    if answer is not None:
        answer = str(answer)
    if isinstance(value, bool):
        letter = "C" if value else "I"
        return {"value": letter, "answer": answer}
    score: dict[str, Any] = {"value": _number(value), "answer": answer}
    if value is None:
        reason = f"no answer: {row['status']}"
        if row["status"] == "ok":
            reason = "this question has no right answer"
        score["explanation"] = reason
        score["metadata"] = {"status": row["status"], "reason": reason}
    return score


def _slug(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-") or "unknown"


def _write_log(kind: str, model: str, task: str, samples: Sequence[dict], folder: Path) -> None:
    """Write the Inspect log of a model, task and condition.

    The same run again takes the place of its file.
    """
    name = FORMS[kind].value
    now = datetime.now(UTC).isoformat(timespec="seconds")
    content = json.dumps([model, task, samples], default=str)
    ident = hashlib.sha256(content.encode()).hexdigest()[:32]
    scores = [sample["scores"][name] for sample in samples]
    values = pd.Series([_number(score["value"]) for score in scores])
    sample_ids = list(dict.fromkeys(sample["id"] for sample in samples))
    spec = {
        "created": now,
        "task": task,
        "model": model,
        "packages": {"selfeval": metadata.version("selfeval")},
        "task_id": ident,
        "run_id": ident,
        "eval_id": ident,
        "metadata": {CLUSTER: FORMS[kind].cluster},
        "dataset": {"name": kind, "samples": len(sample_ids), "sample_ids": sample_ids},
        "config": {"epochs": max(sample["epoch"] for sample in samples)},
    }
    mean = {"name": "mean", "value": float(values.mean())}
    score = {
        "name": name,
        "scorer": name,
        "metrics": {"mean": mean},
        "scored_samples": int(values.count()),
        "unscored_samples": int(values.isna().sum()),
    }
    log = {
        "version": 2,
        "status": "success",
        "eval": spec,
        "plan": {},
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples),
            "scores": [score],
        },
        "stats": {},
        "samples": samples,
    }
    # As Inspect calls its logs.
    file = folder / f"{now.replace(':', '-')}_{task.replace('_', '-')}_{ident}.json"
    for earlier in folder.glob(f"*_{ident}.json"):
        file = earlier
    write_whole(file, json.dumps(log, ensure_ascii=False, indent=1, default=str))
