"""First contact: what a notebook's first cells cost, in the kernel of a notebook.

Run: python -m pytest tests/benchmarks/bench_notebook.py -o python_files='bench_*.py' \
    -o python_functions='bench_*' -s
"""

from __future__ import annotations

import statistics
import time

from tests.doublecheck.notebook.kernels import NotebookKernel, notebook_kernel

ROUNDS = 5
BLOCKING = """
import doublecheck
platform = doublecheck.connect()
platform.run_code("6 * 7").text
"""
AWAITED = """
import doublecheck
platform = await doublecheck.connect_async()
(await platform.run_code("6 * 7")).text
"""
MAGIC = "%load_ext doublecheck\nget_ipython().run_cell_magic('sandbox', '', '6 * 7')"
CALLS = 200


def bench_the_first_result() -> None:
    """From the import to the output; less than 2 s, whichever way it is asked for."""
    for name, cell in (("connect", BLOCKING), ("await", AWAITED), ("%%sandbox", MAGIC)):
        took = [_first(cell) for _ in range(ROUNDS)]

        shown = ", ".join(f"{one:.2f}" for one in sorted(took))
        print(f"first result by {name}: median {statistics.median(took):.2f} s ({shown})")
        assert statistics.median(took) < 2


def bench_what_logs_cost_that_nobody_sees() -> None:
    """A call after ``basicConfig(level=DEBUG)``, against one of a quiet notebook; printed."""
    with notebook_kernel() as notebook:
        notebook.run(BLOCKING)
        quiet = _call_ms(notebook)
        notebook.run("import logging\nlogging.basicConfig(level=logging.DEBUG)")
        debugging = _call_ms(notebook)

    print(f"a call: {quiet:.2f} ms; with logs kept out: {debugging:.2f} ms")


def _first(cell: str) -> float:
    """Run a cell in a notebook that has just been opened; return the seconds that it takes."""
    with notebook_kernel() as notebook:
        begun = time.perf_counter()
        ran = notebook.run(cell)
        took = time.perf_counter() - begun
    assert "42" in ran.text
    return took


def _call_ms(notebook: NotebookKernel) -> float:
    ran = notebook.run(
        f"import time\nbegun = time.perf_counter()\nfor _ in range({CALLS}): platform.ping()\n"
        f"(time.perf_counter() - begun) / {CALLS} * 1000"
    )
    assert "" == ran.stderr
    return float(ran.text)
