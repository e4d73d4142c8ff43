"""The tour in JupyterLab, as a person meets it: opened, run by the menu, with progress bars, tables and figures."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from browser import Browser, needed

from selfeval import ROOT

TOKEN = "of-the-test"
TOUR = ROOT / "notebooks" / "00_tour.ipynb"
CTRL = 2


@contextlib.contextmanager
def lab(folder):
    """Run JupyterLab on a folder, with settings of its own, on loopback; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    state = folder.parent / "jupyter"
    names = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_SETTINGS_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
        "IPYTHONDIR",
    )
    environment = os.environ | {name: str(state / name) for name in names} | {"SELFEVAL_REPLAY": "1"}
    environment.pop("TQDM_DISABLE", None)
    options = {"ip": "127.0.0.1", "port": port, "port_retries": 0, "root_dir": folder, "open_browser": False}
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", f"--IdentityProvider.token={TOKEN}"]
    command += [f"--ServerApp.{name}={value}" for name, value in options.items()]
    with (folder.parent / "lab.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/api?token={TOKEN}", timeout=5):
                break
            assert process.poll() is None and time.monotonic() < end, (folder.parent / "lab.log").read_text()
            time.sleep(0.2)
        yield address
    finally:
        request = urllib.request.Request(f"{address}/api/shutdown?token={TOKEN}", method="POST")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(request, timeout=10).close()  # ends the kernels too
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A browser in which the tour is open, without its outputs: (browser, the notebook's file)."""
    folder = tmp_path_factory.mktemp("lab") / "notebooks"
    folder.mkdir()
    tour = nbformat.read(TOUR, as_version=4)
    for cell in code_cells(tour):
        cell.outputs, cell.execution_count = [], None
    nbformat.write(tour, folder / TOUR.name)
    with lab(folder) as address, Browser() as browser:
        browser.window(1280, 1000)
        browser.open(f"{address}/lab/tree/{TOUR.name}?token={TOKEN}")
        browser.wait("!!document.querySelector('.jp-NotebookPanel .jp-Cell')", 60)
        until(lambda: kernels(address) == ["idle"], "the kernel is ready")
        yield browser, folder / TOUR.name


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.2)
    return found


def kernels(address):
    """Return the states of the kernels that the page is connected to."""
    with urllib.request.urlopen(f"{address}/api/sessions?token={TOKEN}", timeout=10) as answer:
        return [one["kernel"]["execution_state"] for one in json.load(answer) if one["kernel"]["connections"]]


def ended(browser, file):
    """Save as a person does; return the notebook once it has run to its end, or to an error."""
    browser.key("s", 83, modifiers=CTRL)
    try:
        cells = code_cells(notebook := nbformat.read(file, as_version=4))
    except nbformat.reader.NotJSONError:  # it is being written
        return None
    failed = any(output.output_type == "error" for cell in cells for output in cell.outputs)
    return notebook if failed or all(cell.execution_count for cell in cells) else None


def printed(notebook):
    return ["".join(o.text for o in cell.outputs if o.output_type == "stream") for cell in code_cells(notebook)]


@needed
def test_the_tour_runs_from_the_menu_and_says_what_is_committed(opened):
    browser, file = opened
    browser.js("[...document.querySelectorAll('.lm-MenuBar-item')].find(e => e.textContent === 'Run').id = 'run-menu'")
    browser.click("#run-menu")
    browser.click("[data-command='runmenu:run-all']")
    done = until(lambda: ended(browser, file), "the tour has run")
    outputs = [output for cell in code_cells(done) for output in cell.outputs]
    assert [o.evalue for o in outputs if o.output_type == "error"] == []
    assert [cell.execution_count for cell in code_cells(done)] == list(range(1, len(code_cells(done)) + 1))
    assert printed(done) == printed(nbformat.read(TOUR, as_version=4))
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("text/html") >= 3 and kinds.count("image/png") == 1
    assert kinds.count("application/vnd.jupyter.widget-view+json") == 5  # a progress bar for each round of questions
    bar = (
        "document.querySelector('.jp-OutputArea .jupyter-widgets [role=progressbar], .jp-OutputArea .widget-hprogress')"
    )
    browser.js("document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0")
    for _ in range(20):  # cells outside of the window are not on the page
        if browser.js(f"!!{bar}"):
            break
        browser.js("document.querySelector('.jp-WindowedPanel-outer').scrollBy(0, 400)")
        time.sleep(0.3)
    assert browser.js(f"!!{bar}")
    assert browser.complaints == []


def new_cell(browser, text):
    """Add a cell below the selected one and type into it."""
    browser.key("Escape", 27)
    browser.key("b", 66, text="b")
    browser.key("Enter", 13, text="\r")
    browser.type(text)


@needed
def test_tab_offers_the_handful_and_a_wrong_name_is_one_sentence(opened):
    browser, _ = opened
    browser.click(".jp-NotebookPanel .jp-CodeCell .jp-InputPrompt")
    new_cell(browser, "import selfeval")
    browser.key("Enter", 13, modifiers=CTRL)
    new_cell(browser, "selfeval.")
    browser.key("Tab", 9)
    browser.wait("document.querySelectorAll('.jp-Completer-item').length > 5")
    offered = browser.js(
        "[...document.querySelectorAll('.jp-Completer-item .jp-Completer-match')].map(e => e.textContent)"
    )
    assert {"Client", "Condition", "show", "stats"} <= {name.removeprefix("selfeval.") for name in offered}
    browser.key("Escape", 27)
    browser.type("models.get('local/smollm2-135')")
    browser.key("Enter", 13, modifiers=CTRL)
    error = "document.querySelector('.jp-OutputArea [data-mime-type=\"application/vnd.jupyter.stderr\"]')"
    browser.wait(f"!!{error}")
    lines = browser.js(f"{error}.textContent").strip().splitlines()
    assert lines[0].startswith("InputError: Unknown model") and "did you mean 'local/smollm2-135m'?" in lines[0]
    assert [line.strip() for line in lines[1:]] == ["in line 1: selfeval.models.get('local/smollm2-135')"]
