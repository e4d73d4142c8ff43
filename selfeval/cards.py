"""What is said of each kind of record and object: one function for each, which returns its `display.Card`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass

from selfeval.display import SHORT, Card, below_root, facts_of, is_messages, missing, said, short

THOUGHT, FOLDED = 600, 8000  # characters of a reply's reasoning on a card, and of what a page shows folded


def card(record) -> Card:
    """Return what `show` shows of one record."""
    if isinstance(record, Card):
        return record
    builder = next((found for kind in type(record).__mro__ if (found := _OF_CLASS.get(kind.__name__))), None)
    if builder:
        return builder(record)
    if is_messages(record):
        return Card("Messages", passages=said(record))
    if hasattr(record, "_asdict"):
        record = record._asdict()
    elif hasattr(record, "to_dict"):
        record = record.to_dict()
    elif is_dataclass(record):
        return _rest(type(record).__name__, {f.name: getattr(record, f.name) for f in fields(record)})
    if not isinstance(record, Mapping):
        return Card(type(record).__name__, passages=[("", str(record))])
    record = {str(key): value for key, value in record.items() if not missing(value)}
    builder = next((found for keys, found in _OF_FIELDS if all(key in record for key in keys)), None)
    return builder(record) if builder else _rest("Record", record)


def _text(row: dict) -> Card:
    row = dict(row)
    author, asked, text = (row.pop(name, "") for name in ("author", "prompt", "text"))
    name = row.pop("author_display", author)
    thought = _thought(row)
    return _rest(f"Text by {name or row.pop('model', '?')}", row, [("asked for", asked), *thought, ("text", text)])


def _prediction(row: dict) -> Card:
    row = dict(row)
    title = f"{row.pop('task_type')}: asked of {row.pop('evaluator_model')}"
    itself = {True: "itself", False: "not itself"}.get(row.pop("predicted_self", None), "no answer")
    first = [
        ("wrote it", row.pop("true_model_display", row["true_model"])),
        ("says", row.pop("predicted_model", itself)),
        ("which is", {True: "right", False: "wrong"}.get(row.pop("is_correct", None), "no answer")),
    ]
    preview, foreign = row.pop("text_preview", ""), row.pop("returned_text", "")  # foreign files keep the reply there
    text, reply = row.pop("text_full", preview), row.pop("reply", foreign)
    passages = [("asked for", row.pop("prompt_used", "")), ("text", text), *_thought(row), ("raw reply", reply)]
    return _rest(title, row, passages, first)


def _thought(row: dict) -> list[tuple[str, str]]:
    """Take from a row its reasoning, and return its beginning as a passage; of what was sent leave the length."""
    thought = row.pop("reasoning", None) or row.pop("returned_reasoning", None)
    messages = row.pop("messages", None) or row.pop("evaluation_prompt", None)
    if messages:
        row["messages"] = f"{len(as_text(messages, None)):,} characters"
    return [("reasoning", as_text(thought, THOUGHT))]


def as_text(value, most: int | None = FOLDED) -> str:
    """Return messages, reasoning or null as one text; of a long one the first `most` characters."""
    if is_messages(value):
        value = "\n\n".join(f"{role}:\n{content}" for role, content in said(value))
    text = str(value or "")
    left = len(text) - (most or len(text))
    return text[:most] + (f" … ({left:,} more characters)" if left > 0 else "")


def _identity(row: dict) -> Card:
    row = dict(row)
    messages = said(row.pop("messages"))
    title = f"{row.pop('model')} is {row.pop('truth')} · {row.pop('condition', '')}, {row.pop('arm')}"
    reply, thought = f"{row.pop('source', 'reply')}, turn {row.pop('turn', 0)}", _thought(row)
    first = [(name, short(row.pop(name))) for name in ("foil", "stance", "accepts", "passed", "status") if name in row]
    return _rest(title, row, [*messages, *thought, (reply, row.pop("reply", ""))], first)


def _statement(row: dict) -> Card:
    row = dict(row)
    title = f"{row.pop('juror')} ({row.pop('persona', 'no persona')}) on turn {row.pop('turn')}"
    about = f"{row.pop('conversation_id')} · {row.pop('arm')}, round {row.pop('round', 1)}"
    first = [("conversation", about), ("score", short(row.pop("score", "no score"))), ("status", row.pop("status", ""))]
    passages = [*_thought(row), ("statement", row.pop("statement", "")), ("raw reply", row.pop("reply", ""))]
    return _rest(title, row, passages, first)


def _conversation(row: dict) -> Card:
    row = dict(row)
    turns = [(f"{t['speaker']}{_unusual(t)}", t.get("text") or "") for t in row.pop("turns")]
    return _rest(f"Conversation {row.pop('conversation_id', '')}", row, turns)


def _unusual(turn: Mapping) -> str:
    return f" [{turn['status']}]" if turn.get("status", "ok") != "ok" else ""


def _response(response) -> Card:
    row = response if isinstance(response, Mapping) else response.to_dict()
    row = dict(row)
    text, status = row.pop("text", ""), row.pop("status", "ok")
    row.pop("logprobs", None)
    thought = [("reasoning", row.pop("reasoning"))] if row.get("reasoning") else []
    return _rest(f"Reply: {status}", row, [*thought, ("text", text)])


def _stored(row: dict) -> Card:
    request, response = (json.loads(v) if isinstance(v, str) else v for v in (row["request"], row["response"]))
    reply = _response(response)
    facts = facts_of({**request.get("parameters", {}), "sample": request.get("sample"), "key": row["key"][:12]})
    served = f"{request.get('model')} ({request.get('provider', {}).get('provider', '?')})"
    title = f"Stored reply of {served}: {response.get('status', 'ok')}"
    return Card(title, facts + reply.facts, said(request["messages"]) + reply.passages)


def _request(request) -> Card:
    messages, parameters = request.full()
    more = {"sample": request.sample, "seed": request.seed, "key": request.key[:12]}
    return Card(f"Request to {request.model.id}", facts_of({**parameters, **more}), said(messages))


def _question(question) -> Card:
    request = _request(question.request())
    wrote = ", ".join(dict.fromkeys(text["author"] for text in question.texts))
    title = f"Question {question.task} to {question.evaluator.id}"
    return Card(title, [("written by", wrote), *request.facts], request.passages)


def _model(model) -> Card:
    values = {f.name: getattr(model, f.name) for f in fields(model)}
    provider, name = values.pop("provider"), values.pop("display")
    keys = {} if not provider.keys else {"key": "set" if provider.key else f"not set ({provider.keys[0]})"}
    return _rest(f"Model {values.pop('id')}: {name}", {"provider": provider.name, **keys, **values})


def _provider(provider) -> Card:
    values = {f.name: getattr(provider, f.name) for f in fields(provider)} | {"base_url": provider.url}
    values |= {"keys": provider.keys and ", ".join(provider.keys), "embedded": (provider.embedded or {}).get("engine")}
    return _rest(f"Provider {values.pop('name')}", values)


def _client(client) -> Card:
    where = {"in flight": client.concurrency, "store": below_root(client.store.path)}
    return Card(f"Client: {client.tally}", facts_of(where))


def _store(store) -> Card:
    facts = facts_of(
        {"file": below_root(store.path), "replay only": store.replay, "recorded": below_root(store.recorded_folder)}
    )
    rows = store.statistics() if store.path.exists() else []
    return Card("Response store", facts, table=[[*rows[0]], *([*row.values()] for row in rows)] if rows else ())


def _estimate(estimate) -> Card:
    names = ("value", "low", "high", "n", "n_prompts", "note")
    columns = [_flat(getattr(estimate, name)) for name in names]
    length = max(map(len, columns))
    rows = zip(*(c * length if len(c) == 1 else c for c in columns), strict=True)
    return Card(f"Estimate, {estimate.level:.0%} interval: {estimate.method}", table=[names, *rows])


def _flat(value) -> list:
    value = value.tolist() if hasattr(value, "tolist") else value
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = [one for part in value for one in part]
    return value if isinstance(value, list) else [value]


def _runner(runner) -> Card:
    config = runner.config
    rows = [(case["id"], case["type"], case["prompt"]) for case in config.cases]
    return Card(f"Identity evaluation {config.name}", table=[("case", "type", "prompt"), *rows])


def _results(results: Mapping) -> Card:
    marks = {True: "pass", False: "FAIL", None: "no answer"}
    rows = [(t["test_id"], t["test_type"], marks[t["passed"]], t["response"] or "") for t in results["test_results"]]
    facts = {key: value for key, value in results.items() if key not in ("test_results", "model_id", "pass_rate")}
    title = f"{results['model_id']}: {results['pass_rate']}"
    return Card(title, facts_of(facts), table=[("test", "type", "result", "response"), *rows])


_OF_CLASS = {
    "Response": _response, "Request": _request, "Question": _question, "Model": _model, "Provider": _provider,
    "Client": _client, "Store": _store, "Estimate": _estimate, "EvalRunner": _runner,
}  # fmt: skip
_OF_FIELDS = (
    (("task_type", "evaluator_model", "true_model"), _prediction),
    (("juror", "arm", "conversation_id", "turn"), _statement),
    (("messages", "truth", "model", "arm"), _identity),
    (("test_results", "model_id", "pass_rate"), _results),
    (("turns",), _conversation),
    (("key", "request", "response"), _stored),
    (("text", "prompt"), _text),
    (("text", "status"), _response),
)


def _rest(title: str, row: Mapping, passages: Iterable = (), first: Iterable = ()) -> Card:
    """Return a card of a row's remaining fields: short ones as facts, long texts and messages as passages."""
    passages = [(label, str(text)) for label, text in passages if text]
    for name, value in row.items():
        if is_messages(value):
            passages += said(value)
        elif isinstance(value, str) and (len(value) > SHORT or "\n" in value):
            passages.append((name, value))
    short = {k: v for k, v in row.items() if not (is_messages(v) or k in dict(passages))}
    return Card(title, [*facts_of(dict(first)), *facts_of(short)], passages)
