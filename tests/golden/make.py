"""What the golden reference asks and computes; `python tests/golden/make.py` freezes the keys of new designs.

The fixtures beside it were made with version 0.1, once: README.md says how.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import adapter  # noqa: E402
import pandas as pd  # noqa: E402

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
    """Write keys.json, with no key, no replay and no other registry of the environment in the way."""
    for name in [name for name in os.environ if name.startswith("SELFEVAL_") or name.endswith("_API_KEY")]:
        del os.environ[name]
    os.environ |= {"TQDM_DISABLE": "1", "SELFEVAL_STORE": str(Path(tempfile.mkdtemp()) / "none.sqlite")}
    freeze_keys()


if __name__ == "__main__":
    main()
