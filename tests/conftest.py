"""What all tests share: a store of their own, no real key, no address but loopback, a fake server to ask."""

import atexit
import contextlib
import csv
import io
import os
import re
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pytest
import warm_kernels
from fake_server import FakeServer

from selfeval import DATA, ROOT
from selfeval.providers import models
from selfeval.providers.store import Store

FULL = os.environ.get("SELFEVAL_FAULTS") == "full"  # `make faults`
KEY = "-".join(("sk", "secret", "0123456789"))  # in pieces: no file of the repository holds it

# jsonschema does without this check of a format that no notebook has: its import takes a second in every process.
sys.modules.setdefault("rfc3987_syntax", None)
_quick = str(Path(__file__).parent / "quick")
if _quick not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_quick, os.environ.get("PYTHONPATH")]))

signal.signal(signal.SIGINT, signal.default_int_handler)  # after a shell's `&` it is ignored, by children too

# For the whole session and its child processes. Empty and not removed: `.env` fills in what is missing.
for _provider in models.providers().values():
    os.environ |= dict.fromkeys((*_provider.keys, *filter(None, [_provider.base_url_env])), "")
_OURS = ("SELFEVAL_REPLAY", "SELFEVAL_MODELS", "SELFEVAL_PROGRESS", "MPLBACKEND")  # the last changes what kernels draw
for _name in (*_OURS, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
    os.environ.pop(_name, None)
    os.environ.pop(_name.lower(), None)
_session = os.environ.get("SELFEVAL_TESTS")  # the folder of the whole session, in a worker of pytest-xdist
_folder = tempfile.mkdtemp(prefix="selfeval-tests-", dir=_session)
os.environ["SELFEVAL_STORE"] = os.path.join(_folder, "store.sqlite")  # noqa: PTH118
if not _session:
    os.environ["SELFEVAL_TESTS"] = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)


# Files that start processes, kernels or the embedded model, and notebooks: first, so that no core waits at the end.
SLOW = (
    "test_parameters test_stud test_pri test_gold test_opt test_fau test_emb test_prof test_chain test_sweep "
    "test_kernels test_clus test_page test_note 0"
).split()


# Files whose subject is a process, its kernel and its end, by how their names begin, and the notebooks.
OWN_KERNELS = "test_kernels test_cluster test_faults test_chain test_no 0 1".split()


class Environment:
    """What nbval executes runs on the recordings, without progress bars, in Jupyter's own kernels; most tests have
    kernels that have imported the libraries already, and nothing of the rest."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        is_notebook = item.path.suffix == ".ipynb"
        has_own = item.path.stem.startswith(tuple(OWN_KERNELS))
        wanted = {
            "SELFEVAL_REPLAY": "1" if is_notebook else None,
            "TQDM_DISABLE": "1" if is_notebook else None,
            "JUPYTER_PATH": None if has_own else f"{os.environ['SELFEVAL_TESTS']}/jupyter",
        }
        for name, value in wanted.items():
            os.environ.pop(name, None)
            if value:
                os.environ[name] = value


def pytest_configure(config):
    config.pluginmanager.register(Environment())  # a conftest's own hooks are for the tests beside it alone
    if not _session and not config.option.collectonly:
        kernels = warm_kernels.start(_folder)
        config.add_cleanup(kernels.stdin.close)


def pytest_collection_modifyitems(items):
    ranks = {prefix: rank for rank, prefix in enumerate((*SLOW, ""))}
    items.sort(key=lambda item: min(rank for prefix, rank in ranks.items() if item.path.stem.startswith(prefix)))


def committed():
    """Return {file: text} of the records and results that the notebooks write again when nbval executes them."""
    return {file: file.read_text("utf-8") for place in WRITTEN for file in DATA.glob(place) if file.is_file()}


def drawn_otherwise():
    """Return the files that 09 and 13 wrote in this session and that are not those in figures/."""
    shown = {}
    for folder in DRAWN:
        for file in (*folder.rglob("*.svg"), *folder.rglob("*.tex")):
            if file.stat().st_mtime > BEGAN:
                shown[file] = FIGURES / file.relative_to(folder)
    return [file for file, ours in shown.items() if differs(file, ours.read_text("utf-8"), file.read_text("utf-8"))]


def differs(file, was, now):
    """Tell whether a file holds something else, numbers in tables to four digits and places in figures to a hundredth
    of a point: others depend on the machine."""
    if file.suffix == ".svg":
        (words, places), (words_now, places_now) = (apart(text) for text in (was, now))
        return words != words_now or places_now != pytest.approx(places, abs=0.01)
    if file.suffix != ".csv":
        return was != now
    try:
        pd.testing.assert_frame_equal(*(pd.read_csv(io.StringIO(text)) for text in (was, now)), rtol=1e-4, atol=1e-6)
    except AssertionError:
        return True


def apart(drawing):
    """Return the words of an SVG, and its numbers with a decimal point; ids and links name what they hold."""
    drawing = re.sub(r'(?<=["#])(m|p|image)[0-9a-f]{10}(?=["#)])|(?<=base64,)[^"]+', "", drawing)
    return re.split(r"-?\d+\.\d+", drawing), [float(number) for number in re.findall(r"-?\d+\.\d+", drawing)]


FIGURES = ROOT / "figures"
DRAWN = (DATA / "results" / "figures", DATA / "results" / "published")
BEGAN = time.time()
WRITTEN = ("*/sample/*.jsonl", "results/*/*/*.csv", "results/validation/*.csv")
BEFORE = {} if _session else committed()


def pytest_sessionfinish(session):
    """Fail where the notebooks, executed once by nbval, made other records or results than the committed ones, and
    where anything that the tests wrote holds a key; a test that plants one on purpose removes it again."""
    folder = getattr(session.config, "_tmp_path_factory", None) and session.config._tmp_path_factory._basetemp
    now = committed() if BEFORE else {}
    changed = [file for file, was in BEFORE.items() if differs(file, was, now.get(file, ""))]
    changed += drawn_otherwise() if BEFORE else []
    leaked = holding(KEY, folder, _folder) if folder and not _session else []
    for what, files in (("is not what is committed:", changed), ("holds the tests' key:", leaked)):
        if files:
            session.exitstatus = 1
            print(f"\nwhat the tests wrote {what}", *files, sep="\n")


def holding(key, *folders):
    """Return the files of folders that hold a key."""
    files = (file for folder in folders for file in Path(folder).rglob("*") if file.is_file())
    return [file for file in files if key.encode() in file.read_bytes()]


@pytest.fixture(autouse=True)
def models_given_here_alone(monkeypatch):
    """Forget after a test which models were given as objects in it, as the end of a program does."""
    monkeypatch.setattr(models, "GIVEN", dict(models.GIVEN))


@pytest.fixture(scope="session", autouse=True)
def loopback_only():
    """Make a connection to anywhere else an error that names the address."""

    def checked(method):
        def connect(self, address):
            if self.family in (socket.AF_INET, socket.AF_INET6) and not is_loopback(address[0]):
                raise AssertionError(f"a test tried to connect to {address}")
            return method(self, address)

        return connect

    def lookup(host, *arguments, **options):
        if host and not is_loopback(host):
            raise AssertionError(f"a test tried to look up {host}")
        return found(host, *arguments, **options)

    found = socket.getaddrinfo
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", checked(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", checked(socket.socket.connect_ex))
        patch.setattr(socket, "getaddrinfo", lookup)
        yield


def is_loopback(host):
    name = os.fsdecode(host)
    return name.startswith("127.") or name in ("::1", "localhost", socket.gethostname())


@pytest.fixture
def store(tmp_path):
    """A store of one test, without recorded replies."""
    store = Store(tmp_path / "store.sqlite", recorded=tmp_path / "recorded")
    yield store
    store.close()


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    """Keep what this test asks in a store of its own, whoever asks; return its path."""
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store" / "store.sqlite"))
    return tmp_path / "store" / "store.sqlite"


def labelled(table):
    """Return the rows of a table of replies, with what they say."""
    with (Path(__file__).parent / "labelled" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def wait_for(condition):
    """Return what a condition finds once it is true; a test that waits in vain ends by its time limit."""
    while not (found := condition()):
        time.sleep(0.02)
    return found


@contextlib.contextmanager
def small_disk(size):
    """Let this process write files of `size` bytes at most: pytest's own output too, so end it before a test ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def server(monkeypatch):
    """A function that starts a fake server and points the provider `openai` to it."""
    with contextlib.ExitStack() as stack:

        def start(*arguments, **options):
            server = stack.enter_context(FakeServer(*arguments, **options))
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            return server

        yield start


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A function that writes a registry of one's own and makes it the second one."""

    def write(text):
        path = tmp_path / f"models-{len(list(tmp_path.glob('models-*')))}.yaml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv("SELFEVAL_MODELS", str(path))
        return path

    return write
