"""Example reports."""

from __future__ import annotations

import datetime as dt

from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports.report import Report

HOSTILE = "<script>alert('x')</script> & \x00\x1b[31m \u202e ]]> \ud800 \U0001f600"

DOUBLE = Report(
    "double",
    "double",
    None,
    Run(
        (
            Check("test_x.py::test_a", "INV-04", Verdict.PASSED, duration_s=0.25),
            Check("test_x.py::test_b", "CTL-04", Verdict.PASSED, duration_s=0.5),
        ),
        pytest_exit=0,
        started=dt.datetime(2026, 1, 31, 12, tzinfo=dt.timezone.utc),
        duration_s=1.5,
        chosen=2,
    ),
)

STAGING = Report(
    "staging",
    "live",
    "https://agent.example.com",
    Run(
        (
            Check(
                "test_x.py::test_a",
                "INV-04",
                Verdict.FAILED,
                f"{HOSTILE}\nmore",
                0.25,
                f"{HOSTILE}\nmore",
            ),
            Check("test_x.py::test_c", "INV-04", Verdict.PASSED),
            Check("test_x.py::test_f", "INV-05", Verdict.PASSED),
            Check("test_x.py::test_d", "PRB-01", Verdict.ERROR, "it did not answer"),
            Check("test_x.py::test_e", "MCP-01", Verdict.NOT_OFFERED, "not offered: no mcp"),
        ),
        pytest_exit=2,
        duration_s=2.0,
        chosen=7,
        interrupted=True,
    ),
)

INTERRUPTED = "Interrupted: 5 of 7 checks ran. The others were not checked."
