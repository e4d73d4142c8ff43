"""Benchmarks: `make bench` prints one JSON object with what was measured beside the ideal. Nothing here is asserted.

Run some parts alone: `python bench/bench.py client kernels`.
"""

import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # its fake server and Dask workers

from bench_client import client
from bench_recognition import blind, coverage, planted
from bench_sweep import kernels, throughput
from time_statistics import gaps, million, reading, scale, statistics

PARTS = {
    part.__name__: part
    for part in (
        client, statistics, reading, gaps, million, scale, planted, coverage, blind, kernels, throughput,
    )
}  # fmt: skip

if __name__ == "__main__":
    os.environ["TQDM_DISABLE"] = "1"
    wanted = sys.argv[1:] or list(PARTS)
    print(json.dumps({name: PARTS[name]() for name in wanted}, indent=2))
