"""What does a language model know about itself? Three evaluations for notebooks, sweeps and the command line.

    import selfeval

    authors = selfeval.models.get_all(["local/smollm2-135m", "openai/gpt-4.1"])
    prompts = selfeval.read_prompts(selfeval.DATA / "prompts.jsonl", limit=10)
    async with selfeval.Client() as client:
        texts, _ = await selfeval.generate_texts(client, authors, prompts)
        answers = await selfeval.collect_predictions(client, authors, texts, selfeval.Condition())
    selfeval.show(answers["exact_model"][0])

Asking       Client, Request; `models` (the registry: get, get_all, from_callable)
Recognition  read_prompts, generate_texts, read_texts, match_authors, Condition, collect_predictions, read_predictions
Identity     EvalRunner (a configuration of the published form), run_suite (the wide suite)
Role-play    converse, read_conversations, Jury, hold
Results      `stats` (estimates with intervals), `tables`, `figures`; show (any record), DATA, FIGURES, ROOT

`help(selfeval.collect_predictions)` and so on say what goes in and what comes out. All of it is imported on first use.
The notebooks show each evaluation from its parameters to its conclusions; `selfeval --help` lists the commands.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SELFEVAL_DATA") or ROOT / "data")  # a dry run has a shadow of it
FIGURES = ROOT / "figures"

_HOME = {
    "Client": "asking.client",
    "Condition": "recognition.questions",
    "EvalRunner": "identity",
    "Jury": "roleplay.jury",
    "Request": "asking.request",
    "collect_predictions": "recognition.design",
    "converse": "roleplay.conversation",
    "generate_texts": "recognition.texts",
    "hold": "roleplay.jury",
    "match_authors": "recognition.design",
    "read_conversations": "roleplay.transcripts",
    "read_predictions": "records",
    "read_prompts": "records",
    "read_texts": "records",
    "run_suite": "identity.run",
    "show": "figures.cards",
}
_MODULES = {"figures": "figures", "models": "models", "stats": "stats", "tables": "figures.tables"}
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


def __getattr__(name: str):
    """Import what the package's face names when it is first used, so that `import selfeval` takes no time."""
    if name in _MODULES:
        return import_module(f"selfeval.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'selfeval' has no attribute {name!r}; it has {', '.join(__all__)}")
    if name == "Client":
        import_module("selfeval.recognition")  # whose simulated models it can ask
    value = globals()[name] = getattr(import_module(f"selfeval.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def _begin(shell) -> None:
    """Keep keys out of what a notebook's kernel sends, and show our objects as cards."""
    import_module("selfeval.keys").guard_kernel(shell)
    import_module("selfeval.figures.cards").show_objects(shell, _CARDS)


if (_ipython := sys.modules.get("IPython")) and (_shell := _ipython.get_ipython()):
    _begin(_shell)
