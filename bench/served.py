"""The tests' fake server in a process of its own, as benchmarks need it: `python bench/served.py 0.1 NO`.

The first line that it prints is the URL, and it ends when its parent does.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from fake_server import FakeServer


def main(latency: str, reply: str) -> None:
    """Answer every request with a text after so many seconds, until the parent is gone."""
    parent = os.getppid()
    with FakeServer(reply, latency=float(latency)) as server, contextlib.suppress(KeyboardInterrupt):
        print(server.url, flush=True)
        while os.getppid() == parent:
            time.sleep(0.5)


@contextlib.contextmanager
def served(latency: float, reply: str = "NO") -> Iterator[str]:
    """Run the server in a process of its own; yield its URL."""
    command = [sys.executable, __file__, str(latency), reply]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
