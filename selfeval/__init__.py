"""What does a language model know about itself? Three evaluations for notebooks, sweeps and the command line.

    import selfeval as se

    texts = se.generate_texts(["local/smollm2-135m", "openai/gpt-4.1"], prompts=10)
    answers = se.collect_predictions(texts)
    result = se.measure_recognition(answers)
    se.plot(result)

Recognition  generate_texts, collect_predictions, measure_recognition, check_rules, controls
Implicit     likelihoods, measure_implicit
Identity     ask_identity, measure_identity, compare_scorers
Published    EvalRunner runs a configuration of the published form; save_results, simulated_identity
Role-play    list_roles, converse, exchanges, judge, measure_jury, hearings, jury_costs
Existence    ask_existence, measure_existence
Validation   measure_validation
Results      plot, table, notes, conclude, compare, plan, save, show; more in `stats` and `figures`
Runs         read_results, runs, draw_paper, write_report
Models       list_models; `models` is the registry
Places       DATA, FIGURES, ROOT; keep_samples keeps a notebook from replacing committed samples
Safety       visible makes what a model said harmless to print

Ids, rows, DataFrames and files go in, DataFrames come out; `help(se.collect_predictions)` explains every keyword. A
verb that asks models has a twin to await (`await se.agenerate_texts(...)`). All of it is imported on first use.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (_PACKAGE / "data").is_dir()  # from a wheel, which holds what a clone has beside the package
ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent
HOME = Path.cwd() if INSTALLED else ROOT  # of what is the user's own
DATA = Path(os.environ.get("SELFEVAL_DATA") or HOME / "data").absolute()  # a dry run has a shadow of it
FIGURES = HOME / "figures"

ASKING = (
    "generate_texts", "collect_predictions", "check_rules", "ask_identity", "compare_scorers", "converse", "judge",
    "ask_existence", "likelihoods",
)  # fmt: skip
_FACE = (
    *ASKING, "measure_recognition", "measure_implicit", "measure_identity", "measure_jury", "measure_existence",
    "controls", "plot", "measure_validation", "table", "conclude", "compare", "plan", "save", "read_results", "runs",
    "list_models", "list_roles", "hearings", "notes",
)  # fmt: skip
_HOME = dict.fromkeys(_FACE, ("face", "")) | {
    "EvalRunner": ("identity", ""),
    "exchanges": ("roleplay.report", ""),
    "jury_costs": ("roleplay.report", "costs"),
    "draw_paper": ("figures.paper", "make"),
    "keep_samples": ("files", ""),
    "save_results": ("identity", ""),
    "show": ("figures.cards", ""),
    "simulated_identity": ("identity.simulated", "model"),
    "visible": ("keys", ""),
    "write_report": ("report", "build"),
}
_MOVED = {  # what 0.1 offered here
    "Client": "its settings are keywords of every verb that asks: selfeval.generate_texts(..., concurrency=16)",
    "Condition": "its fields are keywords of selfeval.collect_predictions",
    "Jury": "its fields are keywords of selfeval.judge",
    "Request": "it is selfeval.asking.request.Request",
    "hold": "it is selfeval.judge",
    "match_authors": "selfeval.collect_predictions does it; say in `authors` who is who",
    "read_conversations": "selfeval.judge takes files, rows and frames",
    "read_predictions": "selfeval.measure_recognition takes files, rows and frames",
    "read_prompts": "selfeval.generate_texts takes numbers, files, texts and rows as `prompts`",
    "read_texts": "selfeval.collect_predictions takes corpora, files, rows and frames",
    "run_suite": "it is selfeval.ask_identity",
    "tables": "it is selfeval.figures",
}
_MODULES = ("figures", "models", "stats")
_CARDS = {  # classes that a notebook shows as cards
    "selfeval.asking.client": ("Client", "Tally"),
    "selfeval.asking.request": ("Request", "Response"),
    "selfeval.identity.published": ("Results",),
    "selfeval.models": ("Model", "Provider"),
    "selfeval.recognition.questions": ("Condition", "Question"),
    "selfeval.roleplay.jury": ("Jury",),
    "selfeval.roleplay.transcripts": ("Conversation",),
}

__all__ = ["DATA", "FIGURES", "ROOT", *_HOME, *_MODULES]


def shipped(name: Path | str) -> Path:
    """Return a file or folder to read below data/: the user's own, or where there is none that of the package."""
    installed = ROOT / "data" / name
    return installed if INSTALLED and installed.exists() and not (DATA / name).exists() else DATA / name


def __getattr__(name: str):
    """Import what the package's face names when it is first used, so that `import selfeval` takes no time."""
    if name in _MODULES:
        return import_module(f"selfeval.{name}")
    if name in _MOVED:
        raise AttributeError(f"selfeval.{name} is no more since 0.2: {_MOVED[name]}.")
    if name[:1] == "a" and name[1:] in ASKING:
        return __getattr__(name[1:]).awaited
    if name not in _HOME:
        raise AttributeError(f"module 'selfeval' has no attribute {name!r}; it has {', '.join(__all__)}")
    module, called = _HOME[name]
    value = globals()[name] = getattr(import_module(f"selfeval.{module}"), called or name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def _begin(shell) -> None:
    """Keep keys out of what a notebook's kernel sends, and show our objects as cards."""
    import_module("selfeval.keys").guard_kernel(shell)
    import_module("selfeval.figures.cards").show_objects(shell, _CARDS)


if (_ipython := sys.modules.get("IPython")) and (_shell := _ipython.get_ipython()):
    _begin(_shell)
