"""The rooms of the package: who imports whom, how many files stand above the rooms, and which names they have."""

import ast
import re
import sys
import tomllib
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from selfeval import ROOT

PACKAGE = ROOT / "selfeval"
APART = ("recognition", "identity", "roleplay", "existence")  # evaluations do not know each other
FLOORS = (  # a module imports from its own room and from those below it
    ("__main__",),
    ("cli", "sweep"),
    ("profiles",),
    ("api",),
    ("estimates",),
    ("stats",),
    ("inspect_tasks",),
    ("figures",),
    ("simulated",),
    APART,
    ("results",),
    ("statistics",),
    ("records",),
    ("condition",),
    ("providers",),
    ("reading",),
    ("errors", "paths", "secrets", "bounds"),
)
LATER = ("IPython", "xllamacpp", "inspect_ai")  # in a notebook, by the embedded server, for extras
FILES = {file.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): file for file in PACKAGE.rglob("*.py")}


def imported(name: str, file: Path) -> set[str]:
    """Return the modules of the package that a file imports, also inside functions, or by their names in a text."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "selfeval":
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(":")[0])  # as `import_module` and `resolve_name` take it
    return {each for each in found if each in FILES and each != name}


def room(name: str) -> str:
    return name.split(".")[1]


GRAPH = {name.removesuffix(".__init__"): imported(name, file) for name, file in FILES.items()}


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_imports_run_one_way(name):
    if name == "selfeval":
        return
    floor = {each: number for number, rooms in enumerate(FLOORS) for each in rooms}
    for other in GRAPH[name]:
        assert floor[room(name)] <= floor[room(other)], f"{name} imports {other}, which stands above it"
        assert room(name) == room(other) or not {room(name), room(other)} <= {*APART}, f"{name} knows {other}"


def test_all_that_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    with_the_package = project["dependencies"]
    for_sweeps = [*with_the_package, *extras["lab"], *extras["cluster"]]
    brought = packages_distributions()  # takes a second
    for name, file in FILES.items():
        runs_notebooks = room(f"{name}.") == "sweep" or name == "selfeval.cli.pages"
        allowed = for_sweeps if runs_notebooks else with_the_package
        declared = {re.match(r"[\w-]+", each)[0].lower().replace("_", "-") for each in allowed}
        nodes = [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
        names = [each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)]
        names += [alias.name for each in nodes if isinstance(each, ast.Import) for alias in each.names]
        for top in {each.partition(".")[0] for each in names} - {*sys.stdlib_module_names, "selfeval", *LATER}:
            distributions = {each.lower().replace("_", "-") for each in brought[top]}
            assert declared & distributions, f"{name} imports {top}"


def test_there_is_no_circle():
    left = dict(GRAPH)
    while free := [name for name, others in left.items() if not others & left.keys() - {name}]:
        left = {name: others for name, others in left.items() if name not in free}
    assert not left


def test_few_files_stand_above_the_rooms_and_no_name_is_used_twice():
    above = [file.stem for file in PACKAGE.glob("*.py")]
    assert len(above) <= 12
    folders = [folder.name for folder in PACKAGE.iterdir() if folder.is_dir() and folder.name != "__pycache__"]
    assert max(Counter(above + folders).values()) == 1


MOST = 106_000  # syntax nodes of the package: a thin one; what is added is paid for by what goes
UNSAID = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.keyword)


def size(node) -> int:
    """Count what a syntax tree says: no text alone, annotation, operator or keyword's name."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return 0
    said = int(not isinstance(node, UNSAID))
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "type_params"):
            said += sum(
                size(each) for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST)
            )
    return said


def test_the_package_stays_thin():
    nodes = sum(size(ast.parse(file.read_text(encoding="utf-8"))) - 1 for file in FILES.values())
    assert nodes <= MOST, f"{nodes} nodes, {nodes - MOST} over; delete what no page, notebook or published system shows"
