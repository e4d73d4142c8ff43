"""A headless Chromium for tests, driven through its DevTools protocol: pages and what went wrong on them.

with Browser() as browser:
    browser.open(path.as_uri())
    assert browser.js("document.title") == "..." and browser.complaints == []
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
import websocket

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needed = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the path, to look at pages as a reader does")


class Browser:
    """One window. complaints: errors and warnings of the console, exceptions, and requests that left the machine."""

    def __init__(self):
        self.complaints: list[str] = []
        self._numbers = itertools.count(1)

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="selfeval-chromium-", ignore_cleanup_errors=True)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--disable-background-networking", "--remote-debugging-port=0"]
        command = [CHROMIUM, *options, f"--user-data-dir={self._folder.name}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        self._process = subprocess.Popen(command, **quiet)
        with urllib.request.urlopen(f"http://127.0.0.1:{self._wait_for_port()}/json/list", timeout=10) as answer:
            page = next(one for one in json.load(answer) if one["type"] == "page")
        self._socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=30, suppress_origin=True)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def _wait_for_port(self):
        file = Path(self._folder.name, "DevToolsActivePort")
        end = time.monotonic() + 30
        while time.monotonic() < end and self._process.poll() is None:
            if file.exists() and (lines := file.read_text().splitlines()):
                return int(lines[0])
            time.sleep(0.05)
        raise RuntimeError("Chromium did not start within 30 seconds")

    def send(self, method, **parameters):
        """Send one command and return its result; events that arrive meanwhile are looked at."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                return message["result"]
            self._notice(message)

    def _notice(self, message):
        event, about = message.get("method"), message.get("params", {})
        if event == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description") or str(about))
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            self.complaints.append(f"console: {about['args']}")
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"log: {about['entry']['text']} {about['entry'].get('url', '')}")
        elif event == "Network.requestWillBeSent":
            url = about["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "http://localhost:")):
                self.complaints.append(f"request to {url[:200]}")

    def js(self, expression):
        """Return the value of a JavaScript expression (a promise is awaited)."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression[:200]}: {found['exceptionDetails']['exception'].get('description')}")
        return found["result"].get("value")

    def wait(self, condition, seconds=30):
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.js(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s: {condition[:300]}")
            time.sleep(0.05)

    def open(self, url):
        """Load a page and wait until it is there."""
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url[:40])}) && document.readyState === 'complete'")

    def window(self, width):
        """Set the window's width; below 600 it is a phone."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
