"""Write the golden reference anew: `python tests/golden/make.py`. What it freezes, and when it is run, is in README.md.

No model is asked: simulated models answer, recorded replies, and the server of the tests for what a store holds.
"""

import asyncio
import csv
import hashlib
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import adapter  # noqa: E402
import pandas as pd  # noqa: E402
from fake_server import FakeServer, instance  # noqa: E402

PORT = 47613  # as in models.yaml
WRITER, SECOND = "golden:writer", "own:second"
AUTHORS = ["sim/good", "sim/no-answer", WRITER]
HOSTED = ["openai/gpt-4.1", "openai/gpt-5", "anthropic/claude-sonnet-4"]
JURORS = ["sim/juror-lenient", "sim/juror-silent", "sim/juror-stern"]
LOCAL = "local/smollm2-135m"


# what is asked --------------------------------------------------------------------------------------------------------


def designs() -> dict[str, dict]:
    """Return {name: {notebook, parameters}} of everything whose keys are frozen; {here} and {folder} stand for paths.

    A later design may read what an earlier one wrote, so they are run in this order.
    """
    found: dict[str, dict] = {}

    def add(name: str, notebook: str, **parameters) -> None:
        assert name not in found, name
        target = "corpus" if notebook.startswith("01") else "out"
        if not notebook.startswith("00"):
            parameters.setdefault(target, f"{{folder}}/{name.replace(' ', '-')}")
        if notebook[:2] in ("04", "06"):
            parameters["n_resamples"] = 10
        found[name] = {"notebook": notebook, "parameters": parameters}

    for notebook in (
        "00_tour",
        "01_generate_texts",
        "02_collect_predictions",
        "04_identity",
        "05_role_play",
        "06_jury",
    ):
        add(f"{notebook}, as it stands", notebook)
    add("07_existence, as it stands", "07_existence")
    add("02_collect_predictions, untold", "02_collect_predictions", told=False)
    for number, (stage, notebook, parameters) in enumerate(adapter.runs(adapter.NOTEBOOKS / "sweeps" / "demo.yaml"), 1):
        if notebook[:2] not in ("03", "08", "09"):
            parameters = {name: value for name, value in parameters.items() if name != "out"}
            if "corpus" in parameters:
                parameters["corpus"] = f"{{folder}}/{parameters['corpus']}"
            add(f"demo sweep, run {number}, {stage}", notebook, **parameters)
    variants(add)
    return found


def variants(add) -> None:
    """Add designs that no notebook asks as it stands: every condition, arm, form and kind of provider, in small."""
    for name in (*HOSTED, "gpt-4-turbo", "ollama:llama3.2", "claude-sonnet-4-5-20250929"):
        title = name.replace("/", " ").replace(":", " ")
        add(f"texts by {title}", "01_generate_texts", models=name, limit=2, samples=2, seed=3, temperature=0.4)
        add(f"existence, {title}", "07_existence", evaluators=name, names=1, templates=0, constrained=":" in name)
        if name in (*HOSTED, "claude-sonnet-4-5-20250929"):  # the others are in no configuration, or alike
            add(f"identity, {title}", "04_identity", models=name, simulated=[], limit=0, arms=EVERY_ARM)
    add(
        "existence, with reasons",
        "07_existence",
        evaluators=["sim/chance", LOCAL],
        names=2,
        reasoning=True,
        iterations=2,
    )
    tasks = ["exact_model", "binary_self", "pairwise_self", "lineup"]
    shared = {"evaluators": HOSTED, "corpus": "{here}/corpora/published.json", "tasks": tasks}
    conditions = {
        "free": {"answer": "free"},
        "constrained": {},
        "untold": {"told": False, "answer": "free"},
        "ids": {"labels": "ids"},
        "anonymous": {"labels": "anonymous", "tasks": ["exact_model", "binary_self", "lineup"]},
        "hints": {"hints": True, "show_prompt": True},
        "stated": {"score": "stated", "tasks": tasks[:3]},
        "stated free": {"score": "stated", "answer": "free", "tasks": tasks[:3]},
        "unscored": {"score": "none", "temperature": 0.5, "repeats": 2, "seed": 7},
        "balanced": {"prevalence": "balanced", "tell_prevalence": True},
        "told one in n": {"tell_prevalence": True, "seed": 1},
        "better": {"question": "better", "tasks": "pairwise_self"},
        "shuffled": {"control": "shuffled"},
        "truncated": {"control": "truncated"},
        "paraphrased": {"control": "paraphrased", "paraphraser": "sim/talker"},
        "paraphrased by a hosted model": {"control": "paraphrased", "paraphraser": HOSTED[0]},
    }
    for name, condition in conditions.items():
        free = {"evaluators": HOSTED[:2]} if condition.get("answer", "constrained") == "constrained" else {}
        add(f"questions, {name}", "02_collect_predictions", **shared | free | condition)
    add("questions, local", "02_collect_predictions", tasks=tasks, limit=2)
    add("identity, judged", "04_identity", models="sim/identity-wavers", simulated=[], limit=9, arms=EVERY_ARM,
        turns=4, repeats=2, seed=5, judge=HOSTED[0])  # fmt: skip
    arms = ["independent", "personas", "reask", "debate", "sham", "simultaneous", "simultaneous_summary"]
    court = {"conversations": ["{here}/roleplay/conversations.jsonl"], "humans": 0, "jurors": JURORS, "arms": arms}
    add("jury, every arm", "06_jury", **court, judge="sim/juror-blind", blind=True, rounds=3)
    add("jury, whole conversations", "06_jury", **court, scope="conversation", dimensions=["identity", "knowledge"])
    add("jury, prefixes", "06_jury", **court, scope="prefix", context="isolated", seed=2, aggregation="majority")
    hosted = court | {"jurors": HOSTED, "arms": ["independent", "personas"]}
    add("jury, hosted", "06_jury", **hosted, dimensions=["identity", "knowledge", "rejection"])
    add("role-play, talkers", "05_role_play", agent="sim/talker", interrogator="sim/talker", seed=4, tokens=50,
        transcripts=["{here}/roleplay/conversations.jsonl"])  # fmt: skip
    add("role-play, hosted", "05_role_play", agent=HOSTED[0], interrogator=HOSTED[1])


EVERY_ARM = ["neutral", "false-near", "false-far", "true", "placebo", "mention"]


def filled(value, folder: Path):
    """Return parameters with the paths that their placeholders stand for."""
    if isinstance(value, str):
        return value.replace("{here}", str(HERE)).replace("{folder}", str(folder))
    if isinstance(value, list):
        return [filled(one, folder) for one in value]
    return {name: filled(one, folder) for name, one in value.items()} if isinstance(value, dict) else value


def freeze_keys() -> None:
    """Write keys.json."""
    folder, frozen = Path(tempfile.mkdtemp()), {"recordings": {}, "designs": {}}
    for name, rows in adapter.recordings().items():
        frozen["recordings"][name] = {"count": len(rows), "keys": " ".join(sorted(k[: adapter.DIGITS] for k in rows))}
    for name, design in designs().items():
        asked = adapter.asked_by(design["notebook"], **filled(design["parameters"], folder))
        assert asked.requests, f"{name} asks nothing"
        frozen["designs"][name] = design | asked.frozen()
        print(f"{len(asked.requests):6} {name}", flush=True)
    shutil.rmtree(folder)
    write(HERE / "keys.json", frozen)


def write(path: Path, content) -> None:
    """Write JSON for people who look at differences."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# fixtures -------------------------------------------------------------------------------------------------------------


def hashed(body: dict) -> int:
    """Return a number that differs from request to request and from machine to machine does not."""
    return int(hashlib.sha256(json.dumps(body["messages"], sort_keys=True).encode()).hexdigest()[:8], 16)


def answer(body: dict) -> str:
    """Answer as the server's model: a choice of the schema, a name of the list, YES or NO, or a few sentences."""
    number, asked = hashed(body), str(body["messages"][-1]["content"])
    form = body.get("response_format") or {}
    if "json_schema" in form:
        schema = json.loads(json.dumps(form["json_schema"]["schema"]))
        for part in schema.get("properties", {}).values():
            if part.get("enum"):
                part["enum"] = part["enum"][number % len(part["enum"]) :]
        return json.dumps(instance(schema))
    lines = [line[2:] for line in asked.splitlines() if line.startswith("- ")]
    if lines:
        return lines[number % len(lines)]
    if "YES" in asked:
        return "YES" if number % 2 else "NO"
    words = "the quiet harbour keeps a yellow letter and nobody opens it before winter".split()
    return " ".join(words[(number >> k) % len(words)] for k in range(24)).capitalize() + "."


class Faults:
    """Which requests fail, and how: by their messages, whatever the order; a failed attempt is made once."""

    ONCE = ("429-none", "500", "drop", "200-error")
    REPLIES = ("refusal", "cut", "filtered", "length", "finish-error")

    def __init__(self):
        self.seen: set[int] = set()

    def __call__(self, index: int, body: dict) -> str | None:
        number, first = hashed(body), hashed(body) not in self.seen
        self.seen.add(number)
        if body["messages"][-1]["content"] == "Are you there?":
            return "hang"
        if number % 11 == 0:
            return self.ONCE[number // 11 % len(self.ONCE)] if first else None
        return self.REPLIES[number // 13 % 3] if number % 13 == 0 else None


def make_fixtures() -> None:
    """Write all fixtures: through the notebooks and commands, with a registry, a store and a purse of their own."""
    for name in ("store", "corpora", "predictions", "identity", "roleplay", "existence", "results"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    host = HERE / "store" / "host"
    host.mkdir(parents=True)
    tempfile.tempdir = str(host)
    store = HERE / "store" / "responses.sqlite"
    os.environ |= {"SELFEVAL_STORE": str(store), "SELFEVAL_BUDGET": "golden:5"}
    with FakeServer(answer, faults=Faults(), port=PORT) as server, adapter.undrawn():
        corpora()
        predictions()
        identity()
        roleplay()
        run("07_existence", evaluators=["sim/chance", WRITER], names=1, templates=2, out=HERE / "existence")
        before = len(server.ledger)
        asyncio.run(adapter.break_off(SECOND, lambda: len(server.ledger) == before))
    keep_purse(host)
    tempfile.tempdir = None
    keep_store(store)
    for file in HERE.glob("roleplay/*.json*"):  # seconds that calls to the server took, as in the store
        file.write_text(re.sub(r'("latency": )(?!0\.0\b)[\d.]+', r"\g<1>0.25", file.read_text("utf-8")), "utf-8")
    keep_only({"existence": "existence.jsonl", "identity": "*.jsonl *.json", "roleplay": "*.jsonl *.json"})
    freeze_results()


def run(notebook: str, **parameters) -> None:
    """Run a notebook with these parameters, one call at a time."""
    given = {name: str(value) if isinstance(value, Path) else value for name, value in parameters.items()}
    adapter.run_notebook(notebook, **given | {"concurrency": 1})
    print(f"       {notebook} {parameters.get('out') or parameters.get('corpus')}", flush=True)


OURS = {"corpus": "{here}/corpora/ours", "evaluators": AUTHORS, "answer": "free"}
SCORED = OURS | {"evaluators": WRITER, "answer": "constrained", "limit": 3}
PREDICTED = {  # folder: what is asked
    "told": OURS | {"tasks": ["exact_model", "binary_self", "pairwise_self", "lineup"], "limit": 3, "score": "none"},
    "untold": OURS | {"told": False, "tasks": "exact_model", "limit": 3, "score": "none"},
    "anonymous": {
        "corpus": "{here}/corpora/samples",
        "evaluators": [*AUTHORS[:2], SECOND],
        "answer": "free",
        "labels": "anonymous",
        "tasks": "exact_model",
        "repeats": 2,
        "temperature": 0.7,
        "seed": 2,
    },
    "scored": SCORED,
    "stated": SCORED | {"score": "stated", "tasks": "pairwise_self"},
}
PLAYED = {  # command: its arguments
    "roleplay": ["--max-turns", 2, "--concurrency", 1, "--feedback"],
    "compare": ["--max-turns", 2, "--concurrency", 1],
}
for played in PLAYED.values():
    played += ["--role-play-llm-model", "sim/talker", "--interrogator-llm-model", WRITER]
    played += ["--jury-llm-models", ",".join(JURORS)]


def corpora() -> None:
    """Ours: six prompts; two samples per prompt; people beside models. And the two forms that others write."""
    folder = HERE / "corpora"
    run("01_generate_texts", models=AUTHORS, limit=6, words=30, corpus=folder / "ours")
    run("01_generate_texts", models=[*AUTHORS[:2], SECOND], limit=3, samples=2, words=30, corpus=folder / "samples")
    run("01_generate_texts", models=AUTHORS[1:], prompts="chats", limit=3, words=15, corpus=folder / "people")
    shown = {"openai/gpt-4.1": "GPT-4.1", "openai/gpt-5": "GPT-5", "anthropic/claude-sonnet-4": "Claude Sonnet 4"}
    ours = adapter.read_texts(str(folder / "ours"))
    texts = [text for text in ours if text["author"] in ("sim/good", "sim/no-answer", WRITER)][:9]
    rows = [
        {
            "text": text["text"],
            "model": HOSTED[number % 3],
            "model_display_name": shown[HOSTED[number % 3]],
            "prompt": text["prompt"],
            "word_count": text["words"],
        }
        for number, text in enumerate(texts)
    ]
    write(folder / "published.json", rows)
    with (folder / "own.csv").open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(["author", "prompt", "text"])
        table.writerows((row["model"], row["prompt"], row["text"].replace(". ", ".\n")) for row in rows)


def predictions() -> None:
    """All four tasks; anonymous labels and repeats; stated scores; and the ten published fields alone."""
    folder = HERE / "predictions"
    for name, parameters in PREDICTED.items():
        run("02_collect_predictions", **filled(parameters, folder), out=folder / name)
    rows = adapter.read_jsonl(folder / "untold" / "predictions_exact_model.jsonl")
    ten = list(rows[0])[:10]
    pd.DataFrame(rows)[ten].to_csv(folder / "published.csv", index=False)
    foreign = [{name: row[name] for name in ten} for row in rows[:12]]
    for row in foreign:  # the other variant: the whole text, and the answer by its label
        row["text_full"], row["returned_text"] = row.pop("text_preview"), "Good" if row["predicted_model"] else ""
        row["predicted_model"] = row["predicted_model"] and {"sim/good": "Good"}.get(row["predicted_model"])
    write(folder / "foreign.json", foreign)


def identity() -> None:
    """The wide suite under pressure, and result objects of the published configuration: of one model and of two."""
    folder = HERE / "identity"
    few = {"limit": 3, "turns": 1, "repeats": 2, "n_resamples": 10}
    run("04_identity", models=["sim/identity-wavers", WRITER], simulated=[], out=folder, **few)
    (folder / "published.json").unlink()
    given = ("identity", "data/identity/published.json", "--concurrency", 1, "--output")
    adapter.command(*given, folder / "one.json", "--model", "sim/identity-susceptible", "--repeats", 2)
    adapter.command(*given, folder / "two.json", "--model", "sim/identity-correct", "--model", WRITER)


def roleplay() -> None:
    """Conversations of models, of people and their twins; files of both commands; verdicts of four arms."""
    folder = HERE / "roleplay"
    talk = {"agent": "sim/talker", "interrogator": WRITER, "turns": 2, "n_conversations": 2, "tokens": 60}
    run("05_role_play", **talk, out=folder)
    for name, arguments in PLAYED.items():
        adapter.command(name, "--output_file_path", folder / f"{name}.json", *arguments)
    heard = {"conversations": [str(folder / "conversations.jsonl")], "agent": "sim/talker", "humans": 3}
    held = {
        "jurors": JURORS,
        "arms": ["independent", "personas", "debate"],
        "judge": "sim/juror-blind",
        "exchanges": 1,
        "n_resamples": 10,
    }
    held["dimensions"] = ["identity"]
    run("06_jury", **heard, **held, out=folder / "judged")
    for name in ("verdicts", "conversations"):
        target = folder / ("judged.jsonl" if name == "conversations" else "verdicts.jsonl")
        (folder / "judged" / f"{name}.jsonl").rename(target)
    shutil.rmtree(folder / "judged")


def keep_store(store: Path) -> None:
    """Take out of the store what differs from run to run, and put in what is left behind by runs that ended badly."""
    [export] = [store.with_name("export.jsonl")]
    with sqlite3.connect(store) as connection:
        rows = connection.execute("SELECT key, response FROM replies ORDER BY key").fetchall()
        for number, (key, response) in enumerate(rows):
            response = json.loads(response) | {"latency": 0.25}
            values = (json.dumps(response), 1_700_000_000.0 + number, key)
            connection.execute("UPDATE replies SET response = ?, created = ? WHERE key = ?", values)
        found = connection.execute("SELECT key, outcome, detail FROM attempts ORDER BY key, at").fetchall()
        connection.execute("DELETE FROM attempts")
        later = [(key, 1_700_001_000.0 + number, *row) for number, (key, *row) in enumerate(found)]
        connection.executemany("INSERT INTO attempts VALUES (?, ?, ?, ?)", later)
        [request] = connection.execute("SELECT request FROM replies ORDER BY key LIMIT 1").fetchone()
        lost = adapter.key_of_request(json.loads(request) | {"sample": 99})  # a claim of a process that was killed
        connection.execute("INSERT INTO claims VALUES (?, 'another-host:4242:0badcafe', 1700000060.0)", (lost,))
    connection.close()
    adapter.command("store", "export", export, "--model", "second")
    row = adapter.rows_of(store)[0]
    row["request"]["sample"] = 98  # a reply that no run could write into the store
    row["key"] = adapter.key_of_request(row["request"])
    rescued = adapter.rescue(store, row)
    rescued.rename(rescued.with_name("1700000000000000000-4242.jsonl"))
    compact(store)


def keep_purse(host: Path) -> None:
    """Take times out of the file of rates and purses, and let another host hold a part of the purse."""
    [limits] = host.rglob("limits.sqlite")
    with sqlite3.connect(limits) as connection:
        connection.execute("UPDATE rates SET requests = 1700000000.0, tokens = 1700000000.0")
        connection.execute("DELETE FROM reserved")
        connection.execute("INSERT INTO reserved VALUES ('golden', 'another-host:4242:0badcafe', 0.25)")
    connection.close()
    compact(limits)
    limits.rename(HERE / "store" / "limits.sqlite")
    shutil.rmtree(host)


def compact(file: Path) -> None:
    """Leave one small file of a database, with nothing beside it."""
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("PRAGMA page_size=1024")
    connection.execute("VACUUM")
    connection.close()


def keep_only(wanted: dict[str, str]) -> None:
    """Remove what the notebooks wrote besides the files of these patterns."""
    for folder, patterns in wanted.items():
        kept = {file for pattern in patterns.split() for file in (HERE / folder).glob(pattern)}
        for file in sorted((HERE / folder).rglob("*"), reverse=True):
            if file not in kept:
                file.rmdir() if file.is_dir() else file.unlink()


# results --------------------------------------------------------------------------------------------------------------


def result_tables() -> dict[str, pd.DataFrame]:
    """Return {file: table} of every evaluation, computed from the records of the fixtures."""

    def records(*parts: str) -> pd.DataFrame:
        return pd.DataFrame(adapter.read_jsonl(HERE.joinpath(*parts)))

    folder = HERE / "predictions"
    told = adapter.read_predictions([folder / "told", folder / "untold"])
    others = adapter.read_predictions([folder / name for name in ("anonymous", "scored", "stated")])
    said, found = records("identity", "identity.jsonl"), records("existence", "existence.jsonl")
    return {
        "self_recognition": adapter.recognition(told),
        "self_recognition_others": adapter.recognition(others),
        "contrasts": adapter.contrasts(told),
        "models_in_general": adapter.in_general(told),
        "identity": adapter.identity(said),
        "survival": adapter.survival(said),
        "jury": adapter.jury(records("roleplay", "verdicts.jsonl")),
        "existence": adapter.existence(found),
    }


def numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its conditions as `1`, `2`, ... in their order: spelled out they are half of a file."""
    if "condition" not in table or table.empty:
        return table
    legend = {label: str(number) for number, label in enumerate(dict.fromkeys(table["condition"]), 1)}
    return table.assign(condition=table["condition"].map(legend))


def freeze_results() -> None:
    """Write the tables of the fixtures, and what the fixtures are read to where a file does not say it itself."""
    (HERE / "results").mkdir()
    for name, table in result_tables().items():
        numbered(table).to_csv(HERE / "results" / f"{name}.csv", index=False, float_format="%.12g")
    with copied("store") as folder:
        rows, tempfile.tempdir = adapter.rows_of(folder / "responses.sqlite"), str(folder)
        place_limits(folder)
        facts = {
            "replies": len(rows),
            "replies_digest": adapter.digest(json.dumps([[row["key"], row["response"]] for row in rows])),
            "attempts": adapter.attempts_of(folder / "responses.sqlite"),
            "spent": adapter.spent("golden"),
        }
    tempfile.tempdir = None
    for name in ("published.json", "own.csv"):
        facts[f"corpora/{name}"] = adapter.read_texts(str(HERE / "corpora" / name))
    for name in ("published.csv", "foreign.json"):
        frame = adapter.read_predictions(HERE / "predictions" / name)
        facts[f"predictions/{name}"] = json.loads(frame.to_json(orient="records"))
    facts["sweep"] = adapter.runs(HERE / "sweep.yaml")
    write(HERE / "facts.json", facts)
    write(HERE / "parameters.json", parameters())


def parameters() -> dict[str, dict]:
    """Return the parameters of all notebooks with their defaults."""
    return {file.stem: adapter.parameters(file.stem) for file in sorted(adapter.NOTEBOOKS.glob("*.ipynb"))}


class copied:
    """A copy of a folder of fixtures for a `with` block: opening a store may change its file."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> Path:
        self.folder = Path(tempfile.mkdtemp(dir=os.environ.get("SELFEVAL_TESTS")))
        return Path(shutil.copytree(HERE / self.name, self.folder / self.name))

    def __exit__(self, *_) -> None:
        shutil.rmtree(self.folder)


def place_limits(folder: Path) -> None:
    """Put the file of rates and purses where a process finds it that has this folder for temporary files."""
    place = folder / f"selfeval-{os.getuid()}"
    place.mkdir(mode=0o700)
    shutil.copy(HERE / "store" / "limits.sqlite", place / "limits.sqlite")


def main() -> None:
    """Write everything, with no key, no replay and no other registry of the environment in the way."""
    for name in [name for name in os.environ if name.startswith("SELFEVAL_") or name.endswith("_API_KEY")]:
        del os.environ[name]
    os.environ |= {"SELFEVAL_MODELS": str(HERE / "models.yaml"), "TQDM_DISABLE": "1"}
    make_fixtures()
    del os.environ["SELFEVAL_MODELS"], os.environ["SELFEVAL_BUDGET"]
    os.environ["SELFEVAL_STORE"] = str(Path(tempfile.mkdtemp()) / "none.sqlite")
    freeze_keys()


if __name__ == "__main__":
    main()
