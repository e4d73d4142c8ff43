"""A dry run, inside the notebooks: requests are counted instead of sent.

`SELFEVAL_PLAN` names the folder of the counts, `SELFEVAL_DATA` a shadow of data/. Stored replies are read as ever; a
request that is not stored gets a stand-in, so that what follows from it is counted too.
"""

import hashlib
import json
import os
import random
import re
from pathlib import Path

from selfeval.asking.request import estimate

WORD = 3  # tokens for two words, and one more: what a text of so many words takes


def folder() -> Path | None:
    """Return the folder of a dry run, None where this is none."""
    name = os.environ.get("SELFEVAL_PLAN")
    return Path(name) if name else None


def note(request, stored: bool, text: str = "") -> None:
    """Count a request that has its reply in the store, or that would be bought.

    Per line: key, model, and for one to buy the tokens of prompt and reply, `low` as they typically are and `high` as
    they can be at most.
    """
    line = {"key": request.key, "model": request.model.id, "stored": stored}
    if not stored:
        messages, parameters = request.full()
        model = request.model
        most = estimate(messages, model.with_room(parameters) if model.reasoning else parameters, model)
        written = sum(len(str(message.get("content")).encode(errors="replace")) // 4 + 4 for message in messages)
        typical = len(text.split()) * WORD // 2 + 1 if " " in text else len(text) // 4 + 2
        line |= {"prompt": [min(written, most[0]), most[0]], "reply": [min(typical, most[1]), most[1]]}
    calls = folder() / "calls"
    calls.mkdir(exist_ok=True)
    with (calls / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def stand_in(messages: list[dict], parameters: dict, key: str) -> str:
    """Return a text of the form that a request asks for: another one for every other request."""
    draw = random.Random(key)
    form = (parameters.get("response_format") or {}).get("json_schema") or {}
    if "schema" in form:
        return json.dumps(_instance(form["schema"], draw))
    wanted = re.search(r"(\d+) words", str(messages[-1]["content"]))
    length = min(int(wanted[1]) if wanted else 12, 5000)
    return " ".join([f"Stand-in {_mark(draw)}", *(draw.choice(WORDS) for _ in range(max(length - 2, 1)))]) + "."


WORDS = "the a river morning engine garden letter window market quiet bridge winter keeps follows opens story".split()


def _mark(draw: random.Random) -> str:
    return hashlib.sha256(str(draw.random()).encode()).hexdigest()[:12]


def _instance(schema: dict, draw: random.Random):
    """Return an instance of a JSON schema of this package's forms, drawn from what it allows."""
    if "anyOf" in schema:
        return _instance(draw.choice(schema["anyOf"]), draw)
    if "enum" in schema:
        return draw.choice(schema["enum"])
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: _instance(part, draw) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema["items"], draw)]
    plain = {"integer": 1, "number": 0.5, "boolean": True, "null": None}
    return plain.get(kind, f"Stand-in {_mark(draw)} for a reason")
