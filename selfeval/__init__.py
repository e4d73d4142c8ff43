"""What does a language model know about itself?

Three evaluations, for notebooks, sweeps and the command line.

    import selfeval as se

    texts = se.generate_texts(["local/smollm2-135m", "openai/gpt-4.1"], prompts=10)
    answers = se.collect_predictions(texts)
    result = se.measure_recognition(answers)
    se.plot(result)

Recognition  generate_texts, collect_predictions, measure_recognition, controls
Implicit     likelihoods, measure_implicit
Identity     ask_identity, measure_identity; extract reads who a reply says it is
Published    EvalRunner runs a configuration of the published form; save_results
Its scripts  Provider, MockProvider, AdversarialMockProvider, Message, ModelResponse, ProviderError
Role-play    list_roles, converse, exchanges, judge, measure_jury, hearings
Existence    ask_existence, measure_existence
Logs         measure_log reads those of Inspect AI
Results      plot, table, compare, save, show; more in `stats` and `figures`
Runs         read_results, runs
Models       list_models; `models` is the registry
Places       DATA, the folder that relative paths lie below; output_folder
Safety       visible makes what a model said harmless to print
Own calls    Client asks models your own Request, and stores the replies

Ids, rows, DataFrames and files go in, DataFrames come out; `help(se.collect_predictions)` explains
every keyword. All of it is imported on first use.
"""

import sys
from importlib import import_module

from selfeval.paths import DATA, ROOT  # noqa: F401

ASKING = (
    "generate_texts",
    "collect_predictions",
    "ask_identity",
    "converse",
    "judge",
    "ask_existence",
    "likelihoods",
)
_VERBS = (
    *ASKING,
    "measure_recognition",
    "measure_implicit",
    "measure_identity",
    "measure_jury",
    "measure_existence",
    "measure_log",
    "controls",
)
_SCRIPTS = (
    "Provider",
    "MockProvider",
    "AdversarialMockProvider",
    "Message",
    "ModelResponse",
    "ProviderError",
)
_HOME = dict.fromkeys(_VERBS, "api") | dict.fromkeys(
    ("EvalRunner", "save_results", *_SCRIPTS), "identity"
)
_HOME |= dict.fromkeys(("exchanges", "hearings"), "roleplay.transcripts") | {
    "list_roles": "roleplay.roles"
}
_HOME |= {
    "plot": "figures.estimates",
    "table": "estimates.summaries",
    "compare": "estimates.comparisons",
}
_HOME |= dict.fromkeys(("save", "read_results", "runs"), "estimates.saved")
_HOME |= {"list_models": "providers.embedded", "show": "results", "visible": "secrets"}
_HOME |= {"output_folder": "paths", "extract": "identity.scoring"}
_HOME |= {"Client": "providers.client", "Request": "providers.request"}
_MODULES = {"figures": "figures", "models": "providers.models", "stats": "stats"}
MEANT = {  # part of a word that people try: the verb
    "jury": "judge",
    "vote": "judge",
    "role": "converse",
    "chat": "converse",
    "interview": "converse",
    "write": "generate_texts",
    "load": "read_results",
    "draw": "plot",
    "export": "save",
}
__all__ = ["DATA", *_HOME, *_MODULES]


def __getattr__(name: str):
    """Import what the package offers when it is first used; `import selfeval` takes no time."""
    if name in _MODULES:
        return import_module(f"selfeval.{_MODULES[name]}")
    if name == "__version__":
        return import_module("importlib.metadata").version("selfeval")
    if name not in _HOME:
        raise AttributeError(f"module 'selfeval' has no attribute {name!r}{_meant(name)}")
    import_module("selfeval.api")  # with all evaluations, so that simulated models play in each
    value = globals()[name] = getattr(import_module(f"selfeval.{_HOME[name]}"), name)
    return value


def _meant(name: str) -> str:
    """Say which verbs somebody may mean, or which there are."""
    start = name.lower()[:6]
    near = [one for one in __all__ if start in one and len(start) > 2]
    if near := near or [verb for word, verb in MEANT.items() if word in name.lower()]:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return (
        import_module("selfeval.errors").did_you_mean(name, __all__)
        or f"; it has {', '.join(__all__)}"
    )


def __dir__() -> list[str]:
    rare = {"DATA", "visible", "Client", "Request", *_SCRIPTS}  # what is offered is what is typed
    return sorted([*{*__all__} - rare, *(name for name in globals() if name.startswith("__"))])


if (_ipython := sys.modules.get("IPython")) and (_shell := _ipython.get_ipython()):
    import_module("selfeval.secrets").guard_kernel(_shell)  # keeps keys out of what it sends
    import_module("selfeval.errors").check_injected(_shell.user_ns.get("In", ()))
else:
    sys.excepthook = import_module("selfeval.errors").say  # a sentence instead of forty lines
