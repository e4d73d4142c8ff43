"""Logs of our tasks of Inspect AI (`selfeval.inspect_tasks`), as records."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from selfeval.bounds import check_zip
from selfeval.errors import InputError
from selfeval.records import tables as record_files

# options of Inspect that change replies
ASKED = {"max_tokens", "top_p", "seed", "system_message", "reasoning_effort", "reasoning_tokens"}


def read_inspect(logs: str | Path | Sequence[str | Path]) -> pd.DataFrame:
    """Return the records of logs that `inspect eval selfeval/...` wrote, a row each.

    logs: files or folders of one evaluation, with one log for each model. `measure_recognition` and
    `measure_identity` take the rows, and texts of `selfeval/write` go to `collect_predictions`.
    Raises `InputError` for logs of different evaluations, and for a run that did not end well.
    """
    files = _files(logs)
    read = [_read(file) for file in files]
    shared = _settings(read[0])
    of_model: dict[str, Path] = {}
    records = []
    for file, log in zip(files, read, strict=True):
        for name, value in _settings(log).items():
            if shared.get(name) != value:
                both = f"{files[0]} and {file} are of different evaluations"
                differ = f"{name} is {shared.get(name)!r} and {value!r}"
                raise InputError(f"{both}: {differ}; read them apart.")
        model = log.eval.task_args.get("model_id") or log.eval.model
        if model in of_model:
            raise InputError(f"{of_model[model]} and {file} are both of {model!r}; name one.")
        of_model[model] = file
        for sample in log.samples:
            records += sample.metadata["records"]
    return pd.DataFrame(records)


def _files(logs) -> list[Path]:
    """Return the files of logs; of a folder, all that are in it."""
    named = [logs] if record_files.is_file(logs) else logs
    files = []
    for path in map(record_files.path_to_read, named):
        files += sorted(path.rglob("*.eval")) if path.is_dir() else [path]
    if not files:
        raise InputError(
            f"{logs} has no log of Inspect (.eval); name one that `inspect eval` wrote."
        )
    return files


def _read(file: Path):
    """Return a log as Inspect reads it; refuse one that is not ours, or not whole."""
    try:
        from inspect_ai.log import read_eval_log  # takes seconds
    except ImportError as error:
        remedy = "pip install 'selfeval[inspect]'"
        raise InputError(
            f"{file} is read by inspect-ai, which is not installed: {remedy}."
        ) from error
    check_zip(file)
    try:
        log = read_eval_log(str(file), resolve_attachments=True)
    except Exception as error:  # all that a reader of somebody's archive raises
        raise InputError(
            f"{file} cannot be read as a log of Inspect ({error}); name another."
        ) from error
    if log.status != "success" or log.invalidated:
        state = "has invalidated samples" if log.invalidated else f"has the status {log.status!r}"
        raise InputError(f"The run of {file} {state}; `inspect eval-retry` asks what is missing.")
    samples = log.samples or []
    if not samples or not all("records" in sample.metadata for sample in samples):
        rule = f"is of {log.eval.task!r}, which has no records of ours"
        raise InputError(f"{file} {rule}; name a log of `inspect eval selfeval/...`.")
    return log


def _settings(log) -> dict:
    """Return what the logs of one evaluation have in common, by the name of the option."""
    arguments = {name: value for name, value in log.eval.task_args.items() if name != "model_id"}
    run = log.eval.config.model_dump(include={"limit", "epochs", "sample_id"})
    asked = log.plan.config.model_dump(include=ASKED)
    return {"task": log.eval.task} | arguments | run | asked
