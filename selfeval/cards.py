"""What is shown of each kind of record and object: a title, the fields that stand first, the long ones as passages."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from selfeval.display import SHORT, Card, below_root, columns, is_messages, missing, short

THOUGHT, FOLDED = 600, 8000  # characters of a reply's reasoning on a card, and of what a page shows folded
PUBLISHED = {
    "returned_reasoning": "reasoning", "returned_text": "reply", "text_preview": "text_full",
    "evaluation_prompt": "messages",
}  # fmt: skip
ABOUT = ("role", "speaker", "test_id", "test_type", "result", "status")  # of one message, turn or test
KINDS = (  # fields that give the kind away, its title, what stands first, passages in the order of reading
    (
        ("task_type", "evaluator_model", "true_model"),
        "{task_type}: asked of {evaluator_model}",
        ("true_model_display", "predicted_model", "predicted_self", "is_correct"),
        ("prompt_used", "text_full", "reasoning", "reply"),
    ),
    (
        ("juror", "arm", "conversation_id", "turn"),
        "{juror} on turn {turn}",
        ("persona", "conversation_id", "arm", "round", "score", "status"),
        ("reasoning", "statement", "reply"),
    ),
    (
        ("messages", "truth", "model", "arm"),
        "{model} is {truth}",
        ("condition", "arm", "source", "turn", "foil", "stance", "accepts", "passed", "status"),
        ("messages", "reasoning", "reply"),
    ),
    (("test_results", "model_id", "pass_rate"), "{model_id}: {pass_rate}", (), ("test_results",)),
    (("turns",), "Conversation {conversation_id}", (), ("turns",)),
    (("text", "prompt"), "Text by {author_display}", (), ("prompt", "reasoning", "text")),
    (("text", "status"), "Reply: {status}", (), ("reasoning", "text")),
)


def card(record) -> Card:
    """Return what `show` shows of one record."""
    name = type(record).__name__
    if isinstance(record, Card):
        return record
    if name in OBJECTS:
        title, values = OBJECTS[name]
        return _filled(title.format(record), values(record), long=("text",))
    if is_messages(record):
        return _filled("Messages", {"messages": record})
    if hasattr(record, "_asdict"):
        record = record._asdict()
    elif hasattr(record, "to_dict"):
        record = record.to_dict()
    elif is_dataclass(record):
        return _filled(name, _fields(record))
    if not isinstance(record, Mapping):
        return Card(name, passages=[("", str(record))])
    return _of_mapping({str(key): value for key, value in record.items() if not missing(value)})


def _of_mapping(row: dict) -> Card:
    if "test_results" in row:
        marks = {True: "pass", False: "FAIL", None: "no answer"}
        row["test_results"] = [{**test, "result": marks[test["passed"]]} for test in row["test_results"]]
    if {"key", "request", "response"} <= {*row}:
        return _stored(row)
    for keys, title, first, passages in KINDS:
        if {*keys} <= {*row}:
            for theirs in PUBLISHED.keys() & row.keys():
                row.setdefault(PUBLISHED[theirs], row.pop(theirs))
            if "messages" in row and "messages" not in passages:  # they say again what other fields hold
                row["messages"] = f"{len(as_text(row['messages'], None)):,} characters"
            titled = re.findall(r"{(\w+)}", title)
            rest = {name: value for name, value in row.items() if name not in titled}
            return _filled(title.format_map(defaultdict(lambda: "?", row)), rest, first, passages)
    return _filled("Record", row)


def _stored(row: dict) -> Card:
    request, response = (json.loads(v) if isinstance(v, str) else v for v in (row["request"], row["response"]))
    served = f"{request.get('model')} ({request.get('provider', {}).get('provider', '?')})"
    shown = {"messages": request["messages"], **request.get("parameters", {}), "sample": request.get("sample")}
    return _filled(
        f"Stored reply of {served}: {response.get('status', 'ok')}", {**shown, "key": row["key"][:12], **response}
    )


def _filled(title: str, row: Mapping, first: Iterable[str] = (), long: Iterable[str] = ()) -> Card:
    """Return a card of a row's fields: short ones as facts, long texts, messages and turns as passages."""
    facts, passages = [], []
    for name in dict.fromkeys((*first, *long, *row)):
        value, label = row.get(name), name.replace("_", " ")
        if missing(value) or (name == "logprobs" and isinstance(value, list)):
            continue
        if parts := said(value):
            passages += parts
        elif name in long or (isinstance(value, str) and (len(value) > SHORT or "\n" in value)):
            passages.append((label, as_text(value, THOUGHT if name == "reasoning" else None)))
        else:
            facts.append((label, short(value)))
    return Card(title, facts, passages)


def said(value) -> list[tuple[str, str]]:
    """Return messages, turns or results of tests as (who or what, text); [] for anything else."""
    found = []
    for part in value if isinstance(value, list | tuple) else ():
        name = isinstance(part, Mapping) and next((n for n in ("content", "text", "response") if n in part), None)
        if not name:
            return []
        found.append((", ".join(str(part[n]) for n in ABOUT if part.get(n, "ok") != "ok"), str(part[name] or "")))
    return found


def as_text(value, most: int | None = FOLDED) -> str:
    """Return messages, reasoning or null as one text; of a long one the first `most` characters."""
    if is_messages(value):
        value = "\n\n".join(f"{who}:\n{content}" for who, content in said(value))
    text = str(value or "")
    left = len(text) - (most or len(text))
    return text[:most] + (f" … ({left:,} more characters)" if left > 0 else "")


# objects --------------------------------------------------------------------------------------------------------------


def _fields(thing) -> dict:
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def _request(request) -> dict:
    messages, parameters = request.full()
    return {"messages": messages, **parameters, "sample": request.sample, "seed": request.seed, "key": request.key[:12]}


def _question(question) -> dict:
    return {"written_by": list(dict.fromkeys(t["author"] for t in question.texts)), **_request(question.request())}


def _model(model) -> dict:
    keys = model.provider.keys
    key = keys and ("set" if model.provider.key else f"not set ({keys[0]})")
    return {**_fields(model), "provider": model.provider.name, "key": key}


def _provider(provider) -> dict:
    engine = (provider.embedded or {}).get("engine")
    return {**_fields(provider), "base_url": provider.url and provider.address, "embedded": engine}


def _client(client) -> dict:
    return {"in_flight": client.concurrency, "store": below_root(client.store.path)}


def _store(store) -> dict:
    rows = store.statistics() if store.path.exists() else []
    counts = columns([[*rows[0]], *(map(short, row.values()) for row in rows)]) if rows else ""
    recorded = below_root(store.recorded_folder)
    return {"file": below_root(store.path), "replay_only": store.replay, "recorded": recorded, "replies": counts}


def _estimate(estimate) -> dict:
    names = ("value", "low", "high", "n", "n_prompts", "note")
    values = np.broadcast_arrays(*(np.ravel(getattr(estimate, name)) for name in names))
    return {"values": columns([names, *(map(short, row) for row in zip(*values, strict=True))])}


def _runner(runner) -> dict:
    cases = runner.config.cases
    return {"cases": [{"test_id": c["id"], "test_type": c["type"], "content": c["prompt"]} for c in cases]}


OBJECTS = {  # class: (title, its fields)
    "Response": ("Reply: {0.status}", lambda response: response.to_dict() | {"status": None}),
    "Request": ("Request to {0.model.id}", _request),
    "Question": ("Question {0.task} to {0.evaluator.id}", _question),
    "Model": ("Model {0.id}: {0.display}", _model),
    "Provider": ("Provider {0.name}", _provider),
    "Client": ("Client: {0.tally}", _client),
    "Store": ("Response store", _store),
    "Estimate": ("Estimate, {0.level:.0%} interval: {0.method}", _estimate),
    "EvalRunner": ("Identity evaluation {0.config.name}", _runner),
}
