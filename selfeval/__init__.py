"""What does a language model know about itself?

Three evaluations, for notebooks, sweeps and the command line.

    import selfeval as se

    texts = se.generate_texts(["local/smollm2-135m", "openai/gpt-4.1"], prompts=10)
    answers = se.collect_predictions(texts)
    result = se.measure_recognition(answers)
    se.plot(result)

All at once  profile: three answers a model, one from each evaluation
Recognition  generate_texts, collect_predictions, measure_recognition, controls
Implicit     likelihoods, measure_implicit
Identity     ask_identity, measure_identity; extract reads who a reply says it is
Published    EvalRunner runs a configuration of the published form; save_results
Its scripts  Provider, MockProvider, AdversarialMockProvider, Message, ModelResponse, ProviderError
Role-play    list_roles, converse, exchanges, judge, measure_jury, hearings
Existence    ask_existence, measure_existence
Inspect      read_inspect takes the logs of `inspect eval selfeval/recognise`
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

# the verbs that put one evaluation's questions to models
_EVALUATIONS = (
    "generate_texts",
    "collect_predictions",
    "ask_identity",
    "converse",
    "judge",
    "ask_existence",
    "likelihoods",
)
# the verbs that ask models
ASKING = (*_EVALUATIONS, "profile")
# {module: what of it the package offers}
_OFFERED = {
    "api": (
        *_EVALUATIONS,
        "measure_recognition",
        "measure_implicit",
        "measure_identity",
        "measure_jury",
        "measure_existence",
        "controls",
        "list_models",
    ),
    "records.inspect_logs": ("read_inspect",),
    "profiles.profile": ("profile",),
    "figures.estimates": ("plot",),
    "estimates.summaries": ("table",),
    "estimates.comparisons": ("compare",),
    "estimates.saved": ("save", "read_results", "runs"),
    "roleplay.transcripts": ("exchanges",),
    "roleplay.shown": ("hearings",),
    "roleplay.roles": ("list_roles",),
    "identity.claims": ("extract",),
    "identity": (
        "EvalRunner",
        "save_results",
        "Provider",
        "MockProvider",
        "AdversarialMockProvider",
        "Message",
        "ModelResponse",
        "ProviderError",
    ),
    "providers.request": ("Request",),
    "results": ("show",),
    "simulated": ("Client",),
    "secrets": ("visible",),
    "paths": ("output_folder",),
}
_MODULES = {"figures": "figures", "models": "providers.models", "stats": "stats"}
# what is rarely typed, and not offered when somebody completes a name
_RARE = {
    "DATA",
    "visible",
    "Client",
    "Request",
    "Provider",
    "MockProvider",
    "AdversarialMockProvider",
    "Message",
    "ModelResponse",
    "ProviderError",
}
# {part of a word that people try: the verb}
MEANT = {
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
_HOME = {name: module for module, names in _OFFERED.items() for name in names}
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
    value = getattr(import_module(f"selfeval.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def _meant(name: str) -> str:
    """Say which verbs somebody may mean, or which there are."""
    word = name.lower()
    near = []
    if len(word) > 2:
        near = [offered for offered in __all__ if word[:6] in offered]
    if not near:
        near = [verb for part, verb in MEANT.items() if part in word]
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    meant = import_module("selfeval.errors").did_you_mean(name, __all__)
    return meant or f"; it has {', '.join(__all__)}"


def __dir__() -> list[str]:
    special = [name for name in globals() if name.startswith("__")]
    return sorted({*__all__, *special} - _RARE)


def _be_safe_to_read() -> None:
    """Keep keys out of what a notebook sends, and refuse parameters that no notebook has."""
    shell = None
    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
    if shell is not None:
        import_module("selfeval.secrets").guard_kernel(shell)
        import_module("selfeval.errors").check_injected(shell.user_ns.get("In", ()))


_be_safe_to_read()
