"""A dry run: requests are counted instead of sent.

`counting` makes one of what is asked inside it. In a sweep, `SELFEVAL_PLAN` names the folder of the
counts and `SELFEVAL_DATA` a shadow of data/. Stored replies are read as ever; a request that is not
stored gets a stand-in, so that what follows from it is counted too.
"""

import json
import math
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from selfeval.errors import did_you_mean
from selfeval.paths import ROOT
from selfeval.providers import models
from selfeval.providers.models import Model
from selfeval.providers.request import WORDS, Request, Response, estimate, is_computed

# bytes of a file; larger ones are linked, and replaced as a whole where they are written
LARGEST_COPY = 1_000_000
COUNTS = (
    "stored",
    "to_buy",
    "in_batches",
    "prompt_tokens_low",
    "prompt_tokens_high",
    "reply_tokens_low",
    "reply_tokens_high",
)
# tokens for two words, and one more: what a text of so many words takes
WORD = 3
_counts: ContextVar[str] = ContextVar("counts", default="")
_from_nothing: ContextVar[bool] = ContextVar("from_nothing", default=False)


def folder() -> Path | None:
    """Return the folder of a dry run, None where this is none."""
    name = _counts.get() or os.environ.get("SELFEVAL_PLAN")
    return Path(name) if name else None


def is_counting() -> bool:
    """Tell whether this is inside `counting`, where nothing is written.

    A sweep's dry run writes to its shadow.
    """
    return bool(_counts.get())


def passes_over_stored() -> bool:
    """Tell whether this dry run counts stored replies as if they were to be bought."""
    return _from_nothing.get()


@contextmanager
def counting(*, from_nothing: bool = False) -> Iterator[Path]:
    """Make what is asked inside a dry run; yield the folder of its counts, for `prices`.

    from_nothing: count stored replies as if they were to be bought.
    """
    with tempfile.TemporaryDirectory(prefix="selfeval-plan-") as name:
        counts = _counts.set(name)
        nothing = _from_nothing.set(from_nothing)
        try:
            yield Path(name)
        finally:
            _from_nothing.reset(nothing)
            _counts.reset(counts)


def count_stored(request: Request) -> None:
    """Count, in a dry run, a request that has its reply in the store."""
    if there := folder():
        _write(there, {"key": request.key, "model": request.model.id, "stored": 1, "to_buy": 0})


def _write(there: Path, line: dict) -> None:
    calls = there / "calls"
    calls.mkdir(exist_ok=True)
    with (calls / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def price(model: Model, count: dict) -> tuple[float, float] | None:
    """Return what a model's calls cost as (low, high) US dollars; None where nobody knows."""
    if is_computed(model) or model.provider.embedded or not count["to_buy"]:
        return 0.0, 0.0
    if model.price is None:
        return None
    per_token_in = model.price["input"] / 1e6
    per_token_out = model.price["output"] / 1e6
    share_in_batches = count["in_batches"] / count["to_buy"]
    paid = 1 - share_in_batches / 2
    ends = []
    for end in ("low", "high"):
        prompts = count[f"prompt_tokens_{end}"] * per_token_in
        replies = count[f"reply_tokens_{end}"] * per_token_out
        ends.append((prompts + replies) * paid)
    return ends[0], ends[1]


def prices(counts: Path):
    """Return a DataFrame of what a dry run counted, a row per model; equal requests count once.

    Dollars are null where nobody knows a price.
    """
    import pandas as pd

    requests: dict[str, dict] = {}
    for file in sorted(counts.glob("calls/*.jsonl")):
        for line in map(json.loads, file.read_text("utf-8").splitlines()):
            # one may be stored, and to be asked again by another
            if line["to_buy"] or line["key"] not in requests:
                requests[line["key"]] = line
    lines = pd.DataFrame([*requests.values()], columns=["model", *COUNTS])
    counted = lines.fillna(0).groupby("model", sort=False).sum().astype(int).reset_index()
    ends = []
    for row in counted.to_dict("records"):
        ends.append(price(models.get(row["model"]), row) or (None, None))
    if not counted["in_batches"].any():
        counted = counted.drop(columns="in_batches")
    usd = pd.DataFrame(ends, columns=["usd_low", "usd_high"], dtype=float)
    return counted.join(usd)


def print_calls(counted) -> int:
    """Print per model what is stored, what would be bought and what that takes.

    Returns the number of calls to buy. counted: what `selfeval.providers.dry_runs.prices` returns.
    """
    stored = int(counted["stored"].sum())
    to_buy = int(counted["to_buy"].sum())
    print(f"{stored} replies are stored, {to_buy} to buy")
    if len(counted):
        if "in_batches" in counted:
            print(f"{counted['in_batches'].sum()} of them go out in batches, at half the price")
        table = counted.rename(columns=lambda name: name.replace("_tokens", ""))
        print(table.to_string(index=False, na_rep="?", float_format=dollars))
        print(price_sentence(counted))
    return to_buy


def price_sentence(counted) -> str:
    """Return what the counted calls cost, and for how many nobody knows.

    A sum of known prices never stands for calls without one: it would be too small.
    """
    unpriced = counted[counted["usd_low"].isna()]
    priced = counted.drop(unpriced.index)
    low = dollars(priced["usd_low"].sum())
    high = dollars(priced["usd_high"].sum())
    known = f"{low} USD for replies of typical length, {high} USD for the longest that limits allow"
    if unpriced.empty:
        return known
    calls = unpriced["to_buy"].sum()
    unknown = f"price unknown for {calls:,} calls ({', '.join(unpriced['model'])})"
    others = priced["to_buy"].sum()
    if others:
        unknown += f"; for the other {others:,}: {known}"
    unlisted = _unlisted(unpriced["model"])
    return f"{unknown}. {unlisted}" if unlisted else unknown


def _unlisted(ids: Iterable[str]) -> str:
    """Say which ids the registry does not list, which may be misspelt, and which of theirs it has.

    Nobody but the provider knows whether it has such a model.
    """
    listed = models.models()
    sentences = []
    for name in ids:
        model = models.get(name)
        if not model.developer:
            of_provider = [one.id for one in listed.values() if one.provider == model.provider]
            meant = did_you_mean(name, of_provider)
            sentences.append(f"{name!r} is in no list here, and may be misspelt{meant or '.'}")
    return " ".join(sentences)


def dollars(amount: float) -> str:
    """Return dollars with four decimals, rounded up.

    What costs anything is not shown as nothing.
    """
    units = math.ceil(round(amount * 10_000, 6))
    return f"{units / 10_000:.4f}"


@dataclass
class Counting:
    """Counts requests in a dry run, and buys nothing; batch: what can goes out in batches."""

    batch: bool

    async def ask(self, request: Request) -> Response:
        """Return a stand-in for the reply to a request, which is counted where it would be bought.

        Counted are the tokens of prompt and reply, `low` as they typically are and `high` as they
        can be at most.
        """
        messages, parameters = request.full()
        text = stand_in(messages, parameters, request.key)
        there = folder()
        if there and not is_computed(request.model):
            in_batches = bool(self.batch and request.model.provider.batch)
            counted = _counted(request, messages, parameters, text)
            _write(there, counted | {"in_batches": int(in_batches)})
        logprobs = None
        if "likelihood" in parameters:
            logprobs = [("", -1.0 - int(request.key[:2], 16))]
        usage = {"prompt": 0, "completion": 0}
        return Response(text, finish_reason="stop", usage=usage, cost=0.0, logprobs=logprobs)


def _counted(request: Request, messages: list[dict], parameters: dict, text: str) -> dict:
    """Return what a request counts for: the tokens of its prompt, and of a reply such as a text."""
    model = request.model
    if model.reasoning:
        parameters = model.with_room(parameters)
    prompt, answer = estimate(messages, parameters, model)
    written = 0
    for message in messages:
        content = str(message.get("content")).encode(errors="replace")
        written += len(content) // 4 + 4
    words = text.split()
    typical = len(text) // 4 + 2
    if len(words) > 1:
        typical = len(words) * WORD // 2 + 1
    return {
        "key": request.key,
        "model": model.id,
        "stored": 0,
        "to_buy": 1,
        "prompt_tokens_low": min(written, prompt),
        "prompt_tokens_high": prompt,
        "reply_tokens_low": min(typical, answer),
        "reply_tokens_high": answer,
    }


def stand_in(messages: list[dict], parameters: dict, key: str) -> str:
    """Return a text of the form that a request asks for: another one for every other request."""
    if "likelihood" in parameters:
        return messages[-1]["content"]
    draw = random.Random(key)
    wanted = re.findall(r"(\d+) words", str(messages[-1]["content"]))
    length = min(int(wanted[-1]), 5000) if wanted else 0
    response_format = parameters.get("response_format") or {}
    form = response_format.get("json_schema") or {}
    if "schema" in form:
        return json.dumps(_instance(form["schema"], draw, length))
    words = [f"Stand-in {draw.random()}"]
    if not wanted:
        length = 12
    words += [draw.choice(WORDS) for _ in range(max(length - 2, 1))]
    return f"{' '.join(words)}."


def _instance(schema: dict, draw: random.Random, words: int):
    """Return an instance of a JSON schema of this package's forms, drawn from what it allows.

    words: of its texts, at least.
    """
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if schema["type"] == "object":
        parts = schema["properties"].items()
        return {name: _instance(part, draw, words) for name, part in parts}
    if schema["type"] == "array":
        return [_instance(schema["items"], draw, words)]
    more = [draw.choice(WORDS) for _ in range(words - 5)]
    return " ".join([f"Stand-in {draw.random()} for a reason", *more])


# a shadow of the files


def inside(value, root: Path):
    """Return a parameter with every whole path led below `root`.

    There the file or folder is seen as it is.
    """
    if isinstance(value, list):
        return [inside(part, root) for part in value]
    if not isinstance(value, str) or value[:1] not in ("/", "~"):
        return value
    path = Path(value).expanduser()
    holds_all = ROOT.is_relative_to(path) or Path.home().is_relative_to(path)
    if len(path.parts) < 3 or holds_all:
        return value
    mirror(path, root)
    return f"{root}{path}"


def mirror(path: Path, root: Path) -> None:
    """Make a file, or all of a folder, appear below `root` too.

    What is written there leaves the original alone.
    """
    for file in path.rglob("*") if path.is_dir() else [path]:
        copy = Path(f"{root}{file}")
        if not file.is_file() or copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.stat().st_size > LARGEST_COPY:
            copy.symlink_to(file)
        else:
            shutil.copyfile(file, copy)
