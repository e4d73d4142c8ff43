"""Every parameter of the notebooks that ask or measure changes what they print, show or write.

The parameters are those of data/committed.yaml, so that a new one without an entry here fails; so does one that changes
nothing. An entry is what the parameter is set to, or (what has to stand beside it, what it is set to). What calls in
flight and replies that are asked for again do is seen in test_options.py: here a cell must hand them on.
"""

import ast
import json
import re
import shutil

import nbformat
import pandas as pd
import pytest
import yaml
from fake_server import FakeServer
from matplotlib.figure import Figure
from written_files import run_notebook

import selfeval as se
from selfeval import DATA, ROOT
from selfeval.errors import InputError, check_injected
from selfeval.paths import committed_runs
from selfeval.records.tables import write_jsonl
from selfeval.records.texts import read_texts

FLEET = ["sim/good", "sim/chance"]
JURORS = ["sim/juror-lenient", "sim/juror-stern", "sim/juror-steady"]
PLACES = {"01_generate_texts": ["corpus"], "15_identity_details": []}  # parameters that say where it writes
HANDED_ON = {"again", "concurrency", "asking"}
OF_THEIR_OWN = {"promise", "figures", "keep", "results"}  # each has a test below
TURN = {"speaker": "agent", "text": "Nobody you know, I fear."}
TALK = {"conversation_id": "t", "source": "human", "turns": [{"speaker": "q", "text": "Who are you?"}, TURN]}

OURS = {"agent": "my/a", "interrogator": "my/b"}  # on a server, which sees what is sent
ASKED = {"models": ["my/a"]}
REGISTRY = "models:\n" + "".join(
    f"  - {{id: my/{name}, provider: llamacpp, model: {name}, display: {display}, family: {display}, "
    f"developer: {display}}}\n"
    for name, display in {"a": "Anna", "b": "Bert", "c": "Cora"}.items()
)

BY_HAND = {"prompts": 20, "know": 0.3, "habit": 0.4, "tables": 1000, "seed": 1}
SMOLLM = "local/smollm2-135m"
SMALL, QWEN = "local/qwen2.5-coder-0.5b", "local/qwen2.5-coder-1.5b"

# {notebook: (its parameters here, {parameter: entry})}; names in braces are files of the study below
NOTEBOOKS = {
    "00_profile": ({"models": ["my/a"], "size": {"prompts": 2, "templates": 2, "people": 2}, "jurors": ["my/b"]}, {
        "models": ["my/b"], "size": {"prompts": 3, "templates": 2, "people": 2}, "jurors": ["my/c"],
        "corpus": "{texts}", "max_cost": 0.01, "seed": 1, "rivals": ["my/c"],
    }),
    "01_generate_texts": ({"models": FLEET, "limit": 2}, {
        "models": ["sim/good"], "prompts": "prompts-confirm.jsonl", "samples": 2, "words": 30, "temperature": 0.2,
        "limit": 3, "seed": 1,
    }),
    "02_collect_predictions": ({"models": FLEET, "corpus": "{texts}", "limit": 2}, {
        "models": ["sim/good"], "corpus": ({"models": ["sim/good"]}, "{others}"),
        "tasks": ["binary_self"], "answer": "free", "told": False,
        "authors": ({"corpus": "{renamed}", "models": ["sim/good"]}, {"Chance": "sim/chance"}),
        "labels": "ids", "provenance": ({"tasks": ["binary_self"], "answer": "free"}, "own_turn"),
        "question": ({"tasks": ["binary_self"]}, "good"), "condition": {"show_prompt": True}, "limit": 1, "seed": 1,
    }),
    "03_self_recognition": ({"predictions": ["{answers}"], "n_resamples": 20, "evaluator": "sim/good"}, {
        "predictions": ["{few}"], "columns": ({"predictions": ["{columns}"]}, {"said": "reply"}),
        "authors": ({"predictions": ["{called}"], "authors": {"GPT-4o": None}}, {"GPT-4o": "sim/chance"}),
        "reread": ({"predictions": ["{turned}"]}, "yes"), "evaluator": "sim/chance", "n_resamples": 30, "level": 0.9,
        "seed": 1,
    }),
    "04_identity": ({"models": ["sim/identity-wavers"], "limit": 4, "n_resamples": 20, "turns": 1}, {
        "models": ["sim/identity-susceptible"], "simulated": ["sim/identity-correct"], "suite": "suite/persona.yaml",
        "arms": ["neutral"], "near": ({"arms": ["false-near"]}, ["anthropic/claude-3-haiku"]), "repeats": 2,
        "turns": ({"limit": 12}, 0),
        "scoring": "keyword_match", "judge": ({"scoring": "judge", "judge": "my/a"}, "my/b"), "limit": 5,
        "n_resamples": 2, "seed": 1,
    }),
    "05_role_play": ({"agent": "sim/talker", "interrogator": "sim/talker", "turns": 1}, {
        "agent": "sim/good", "interrogator": "sim/good", "strategy": "customer", "persona": "terse", "turns": 2,
        "n_conversations": 1, "transcripts": ["{talks}"], "replay": ({"transcripts": ["{talks}"]}, True),
        "temperature": (OURS, 0.1), "tokens": (OURS, 20), "seed": 1,
    }),
    "06_jury": ({"agent": "sim/talker", "jurors": JURORS, "humans": 2, "arms": ["independent", "reask"]}, {
        "agent": "sim/good", "jurors": JURORS[1:], "arms": ["independent"], "humans": 3, "exchanges": 1,
        "conversations": ["{talks}"], "part": {"limit": 0, "max_turns": 1}, "verdicts": ["{verdicts}"],
        "temperature": ({"jurors": ["my/a"]}, 0.1), "how": {"scope": "turn"}, "aggregation": "majority", "seed": 1,
    }),
    "07_existence": ({"models": ["sim/existence-knows"], "names": 2, "templates": 1}, {
        "models": ["sim/existence-agrees"], "targets": ["openai/gpt-4.1", "openai/gpt-4o"], "names": 3,
        "answer_types": ["likert"], "templates": 2, "reasoning": True, "constrained": (ASKED, True), "iterations": 2,
        "temperature": (ASKED, 0.3), "seed": (ASKED, 1),
    }),
    "08_validation": ({"by_hand": BY_HAND}, {
        "folder": "{validation}", "from_prompts": 50, "by_hand": BY_HAND | {"prompts": 30},
    }),
    "10_implicit_explicit": (
        {"corpus": "{ours}", "models": ["my/a", "my/b"], "predictions": ["{said}"], "n_resamples": 20}, {
            "corpus": "{others_of_ours}", "models": ["my/a", "my/c"], "predictions": ["{said_later}"],
            "show_prompt": False, "limit": 2, "n_resamples": 30, "level": 0.9, "seed": 1,
        }),
    "11_recognition_details": ({"predictions": ["{answers}"], "corpus": "{texts}", "n_resamples": 20}, {
        "predictions": ["{few}"], "columns": ({"predictions": ["{columns}"]}, {"said": "reply"}),
        "authors": ({"predictions": ["{called}"], "corpus": "", "authors": {"GPT-4o": None}}, {"GPT-4o": "sim/chance"}),
        "reread": ({"predictions": ["{turned}"]}, "yes"), "corpus": "", "n_resamples": 30, "judge": "my/a",
        "level": 0.9, "seed": 1,
    }),
    "12_words_and_weights": (
        {"texts": "{confirmed}/texts.jsonl", "predictions": ["{confirmed}"], "likelihoods": ["{confirmed}"],
         "curve": [8]}, {
            "texts": "{changed}/texts.jsonl", "predictions": ["{changed}"], "likelihoods": ["{changed}"],
            "models": [SMOLLM, QWEN], "personas": ({"models": [SMOLLM, QWEN]}, {SMALL: SMOLLM}), "clip": 0.1,
            "missing": 0.0, "longest": 2.0, "curve": [10], "level": 0.9, "seed": 1,
        }),
    "13_published_studies": ({"n_resamples": 1000, "seed": 1}, {
        "published": "{published}", "n_resamples": 500, "seed": 3,
    }),
    "14_interrogation": (
        {"models": ["sim/identity-drifts"], "attacker": "sim/attacker", "limit": 2, "turns": 2, "n_resamples": 20}, {
            "models": ["sim/identity-yields"], "attacker": "my/b", "strategies": ["role"], "turns": 3,
            "limit": 3, "repeats": 2, "script": False, "temperature": ({"attacker": "my/b"}, 0.1),
            "n_resamples": 30, "seed": 1,
        }),
    "15_identity_details": ({"models": ["sim/identity-wavers"], "limit": 4, "n_resamples": 20, "turns": 1}, {
        "models": ["sim/identity-susceptible"], "simulated": ["sim/identity-correct"], "suite": "suite/persona.yaml",
        "arms": ["neutral"], "near": ({"arms": ["false-near"]}, ["anthropic/claude-3-haiku"]), "repeats": 2,
        "turns": ({"limit": 12}, 0), "scoring": ({"judge": "my/a"}, "judge"),
        "judge": "my/b", "limit": 5, "n_resamples": 2, "seed": 1,
    }),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with two models."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "models.yaml").write_text(REGISTRY)
    with pytest.MonkeyPatch.context() as patch, FakeServer() as fake:
        patch.setenv("SELFEVAL_MODELS", str(folder / "models.yaml"))
        patch.setenv("LLAMACPP_BASE_URL", fake.url)
        yield fake


@pytest.fixture(scope="module")
def study(tmp_path_factory, server):
    """Return {name: path} of texts, answers, conversations and verdicts of simulated models."""
    folder = tmp_path_factory.mktemp("study")
    texts = se.generate_texts(FLEET, 4)
    answers = se.collect_predictions(texts)
    talks = se.converse("sim/talker", "sim/talker", turns=2, people=2)
    verdicts = se.judge(talks, JURORS, ["independent", "reask"], out=str(folder / "verdicts"))
    ours = [
        {"author": f"my/{author}", "prompt": prompt, "text": f"{author} on {prompt} is" + " so" * ord(author)}
        for author in "ab" for prompt in ("rain", "snow", "wind", "hail", "fog")
    ]  # fmt: skip
    ours = pd.DataFrame(read_texts(ours))
    asked = se.collect_predictions(ours, tasks="binary_self").drop(columns=["predicted_self", "is_correct"])
    said = asked.assign(reply=[["YES", "NO", "NO"][number % 3] for number in range(len(asked))])
    said_later = said.assign(reply=said["reply"].map({"YES": "NO", "NO": "YES"}))
    recorded = answers["predicted_self"].map(lambda said: not said, "ignore")
    frames = {
        "texts": texts, "others": se.generate_texts(["sim/good", "sim/perfect"], 3),
        "renamed": texts.replace({"author": {"sim/chance": "Chance"}, "author_display": {"sim/chance": "Chance"}}),
        "answers": answers, "few": answers[answers["prompt_id"] != answers["prompt_id"].iloc[0]],
        "columns": answers.rename(columns={"reply": "said"}), "turned": answers.assign(predicted_self=recorded),
        "called": answers.drop(columns="reply").replace({"predicted_model": {"sim/chance": "GPT-4o"}}),
        "talks": pd.DataFrame([TALK]), "verdicts": verdicts,
        "ours": ours, "others_of_ours": ours[ours["prompt"] != "rain"], "said": said, "said_later": said_later,
        "pair": se.collect_predictions(texts, "sim/good", tasks="pairwise_self", limit=1),
    }  # fmt: skip
    paths = {"verdicts": str(folder / "verdicts" / "verdicts.jsonl")}
    paths |= copies(folder)
    for name, frame in frames.items():
        if name not in paths:
            paths[name] = str(folder / f"{name}.jsonl")
            write_jsonl(folder / f"{name}.jsonl", rows_of(frame))
    return paths


def copies(folder):
    """Return {name: folder} of committed studies, whole or smaller, some with one number changed."""
    one_number = {
        "validation": ("coverage.csv", 0, "coverage", 0.95001),
        "published": ("reported.csv", 0, "published", -0.08961),
        "results": ("words_and_weights/secondary.csv", 39, "prompts", 119),
    }
    for name, (file, row, column, number) in one_number.items():
        shutil.copytree(DATA / name, folder / name)
        table = pd.read_csv(folder / name / file)
        table.loc[row, column] = number
        table.to_csv(folder / name / file, index=False)
    for name, factor in {"confirmed": 1, "changed": 0.9}.items():
        (folder / name).mkdir()
        texts = pd.read_json(DATA / "corpora/confirm/texts.jsonl", lines=True)
        prompts = texts["prompt_id"].unique()[:24]
        answers = pd.read_json(DATA / "predictions/confirm/predictions_binary_self.jsonl.xz", lines=True)
        likelihoods = pd.read_json(DATA / "predictions/confirm/likelihoods.jsonl.xz", lines=True)
        answers["score"] *= factor
        answers.loc[answers["text_id"] == texts["text_id"][0], "score"] = None
        likelihoods["logprob"] *= factor
        texts["text"] = texts["text"].where(texts.index > 0, texts["text"] + " word" * round(10 - 10 * factor))
        for file, frame in {"texts": texts, "predictions_binary_self": answers, "likelihoods": likelihoods}.items():
            write_jsonl(folder / name / f"{file}.jsonl", rows_of(frame[frame["prompt_id"].isin(prompts)]))
    return {name: str(folder / name) for name in ("validation", "published", "results", "confirmed", "changed")}


def rows_of(frame):
    """Return the rows of a frame as records, what is missing as None."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def text_of(value):
    if isinstance(value, pd.DataFrame):
        return pd.DataFrame(value).to_csv()
    return value.to_csv() if isinstance(value, pd.Series) else repr(value) if isinstance(value, str | list) else ""


def filled(value, study):
    if isinstance(value, list):
        return [filled(part, study) for part in value]
    return value.format_map(study) if isinstance(value, str) else value


SEEN = {}


def seen(stem, parameters, study, folder, server):
    """Return what a notebook prints, shows and writes with these parameters, as one text."""
    key = stem, repr(sorted(parameters.items(), key=str))
    if key not in SEEN:
        given = {name: filled(value, study) for name, value in parameters.items()}
        out = folder / f"run {len(SEEN)}"
        places = {place: str(out) for place in PLACES.get(stem, ["out"])}
        server.ledger.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SELFEVAL_STORE", str(folder / f"store {len(SEEN)}" / "replies.sqlite"))
            patch.setattr(Figure, "savefig", lambda figure, *where, **how: None)  # which takes half the time
            texts = [run_notebook(stem, shown=text_of, **given, **places)]
        texts += [file.read_text() for file in sorted(out.rglob("*")) if file.suffix in (".csv", ".jsonl")]
        texts += sorted(json.dumps(entry["body"]) for entry in server.ledger)
        SEEN[key] = "\n".join(texts).replace(str(out), "")
    return SEEN[key]


def parameters():
    """Return (notebook, parameter) of all parameters of the notebooks above."""
    runs = committed_runs()
    return [
        (stem, name) for stem in NOTEBOOKS for name in runs[stem]["parameters"] if name not in HANDED_ON | OF_THEIR_OWN
    ]


@pytest.mark.parametrize(("stem", "name"), parameters())
def test_every_parameter_changes_what_a_notebook_prints_shows_or_writes(stem, name, study, tmp_path_factory, server):
    base, entries = NOTEBOOKS[stem]
    assert name in entries, f"`{name}` of {stem} has no entry in this file"
    beside, value = entries[name] if isinstance(entries[name], tuple) else ({}, entries[name])
    folder = tmp_path_factory.mktemp("seen")
    usual = seen(stem, base | beside, study, folder, server)
    assert seen(stem, base | beside | {name: value}, study, folder, server) != usual


def test_a_promise_that_the_simulations_do_not_keep_stops_their_notebook(tmp_path):
    with pytest.raises(AssertionError):
        run_notebook("08_validation", promise=0.97, out=str(tmp_path))


def test_the_figure_of_published_studies_can_lie_elsewhere_than_their_tables(tmp_path):
    run_notebook("13_published_studies", out=str(tmp_path / "tables"), figures=str(tmp_path / "figures"))
    assert not {*tmp_path.rglob("*.pdf")} - {*(tmp_path / "figures").rglob("*.pdf")}
    assert not {*tmp_path.rglob("*.csv")} - {*(tmp_path / "tables").rglob("*.csv")}
    assert (tmp_path / "figures" / "published_j.pdf").exists() and (tmp_path / "tables" / "scoreboard.csv").exists()


def test_a_study_of_words_and_weights_keeps_what_it_read_so_that_it_can_be_repeated(study, tmp_path):
    base, _ = NOTEBOOKS["12_words_and_weights"]
    given = {name: filled(value, study) for name, value in base.items()}
    run_notebook("12_words_and_weights", **given, out=str(tmp_path / "first"), keep=str(tmp_path / "kept"))
    given |= {"predictions": [str(tmp_path / "kept")], "likelihoods": [str(tmp_path / "kept")]}
    run_notebook("12_words_and_weights", **given, out=str(tmp_path / "again"))
    for name in ("primary.csv", "secondary.csv"):
        assert (tmp_path / "first" / name).read_text() == (tmp_path / "again" / name).read_text()


def test_figures_for_a_paper_are_drawn_of_the_results_that_are_named_and_without_the_findings_of_others(
    study, tmp_path
):
    until = re.compile(r'keep\("words_and_weights"')
    committed = run_notebook("09_paper_figures", until, out=str(tmp_path / "committed"))
    others = run_notebook("09_paper_figures", until, results=study["results"], out=str(tmp_path / "others"))
    said = yaml.safe_load((ROOT / "notebooks" / "captions.yaml").read_text("utf-8"))["figures"]["words_and_weights"]
    assert committed.partition("\n")[2] == f"{said['finding']} {said['about'].format(n='120')}\n"
    assert others.partition("\n")[2] == f"{said['about'].format(n='119 to 120')}\n"


@pytest.mark.parametrize("stem", sorted(committed_runs()))
def test_every_parameter_is_read_also_what_is_about_calls_alone(stem):
    cells = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    names = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    assert {*committed_runs()[stem]["parameters"]} <= read


OF_COMMITTED_STUDIES = {"08_validation", "12_words_and_weights", "13_published_studies"}
SMALLEST = {
    "00_profile": {"models": "my/a", "size": {"prompts": 1, "templates": 1, "people": 1}, "jurors": "my/b"},
    "01_generate_texts": {"models": "sim/good", "limit": 1},
    "02_collect_predictions": {"models": "sim/good", "corpus": "{texts}", "limit": 1},
    "03_self_recognition": {"predictions": "{pair}", "n_resamples": 2},
    "04_identity": {"models": "sim/identity-correct", "arms": "neutral", "turns": 0, "limit": 1, "n_resamples": 2},
    "05_role_play": {"agent": "sim/talker", "interrogator": "sim/talker", "turns": 1, "n_conversations": 1},
    "06_jury": {"agent": "sim/talker", "jurors": "sim/juror-blind", "humans": 1, "arms": "independent"},
    "07_existence": {"models": "sim/existence-knows", "names": 1, "templates": 1},
    "10_implicit_explicit": {
        "corpus": "{ours}", "models": ["my/a", "my/b"], "predictions": ["{said}"], "limit": 1, "n_resamples": 2,
    },
    "11_recognition_details": {"predictions": "{pair}", "corpus": "", "n_resamples": 2},
    "14_interrogation": {
        "models": "sim/identity-correct", "attacker": "sim/attacker", "strategies": "role", "turns": 1, "limit": 1,
        "n_resamples": 2,
    },
    "15_identity_details": {
        "models": "sim/identity-correct", "arms": "neutral", "turns": 0, "limit": 1, "n_resamples": 2,
    },
}  # fmt: skip


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("stem", SMALLEST)
def test_a_notebook_runs_with_the_smallest_design_that_it_takes(stem, study, tmp_path_factory, server):
    assert seen(stem, SMALLEST[stem], study, tmp_path_factory.mktemp("seen"), server)
    assert SMALLEST.keys() == NOTEBOOKS.keys() - OF_COMMITTED_STUDIES


REFUSED = {
    "01_generate_texts": {"models": ["sim/good", "my/a"], "limit": 1},
    "02_collect_predictions": {
        "models": ["my/a"],
        "corpus": "{texts}",
        "limit": 1,
        "asking": {"allow_strangers": True},
    },
    "04_identity": {"models": "my/a", "limit": 1, "n_resamples": 2},
    "06_jury": {"agent": "sim/talker", "jurors": "my/a", "humans": 1, "arms": "independent"},
    "07_existence": {"models": "my/a", "names": 1, "templates": 1},
    "14_interrogation": {"models": "my/a", "attacker": "sim/attacker", "turns": 1, "limit": 1, "n_resamples": 2},
}


@pytest.mark.parametrize("stem", REFUSED)
def test_a_notebook_whose_calls_failed_says_so_at_its_end_and_how_to_make_these_alone(stem, study, tmp_path, server):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "faults", lambda index, body: "401")
        patch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
        given = {name: filled(value, study) for name, value in REFUSED[stem].items()}
        place = "corpus" if stem == "01_generate_texts" else "out"
        with pytest.raises(AssertionError, match=r"^\d+ calls failed; run again to make only these\. The first: .*401"):
            run_notebook(stem, **given, **{place: str(tmp_path / "out")})


def test_texts_that_did_not_arrive_are_counted_of_all_that_were_asked_for(tmp_path, server):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "reply", lambda body: "")
        patch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
        given = {"models": ["sim/good", "my/a"], "limit": 3, "corpus": str(tmp_path / "out")}
        assert "requests that returned no text: 3 of 6\n" in run_notebook("01_generate_texts", **given)


def test_what_papermill_gives_is_held_against_the_names_of_the_notebooks_own_cell():
    own = "import os\nos.environ['A'] = 'b'\nlimit: int = 3\nmodels = []"
    check_injected(["%load_ext x", own, "# Parameters\nlimit = 4\nmodels = ['a']"])
    with pytest.raises(InputError, match="no parameter 'limt'; did you mean 'limit'"):
        check_injected([own, "# Parameters\nlimt = 4"])
