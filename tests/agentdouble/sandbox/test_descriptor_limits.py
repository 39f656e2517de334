"""Sessions near the limit of open files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import text

pytestmark = pytest.mark.slow

SESSIONS = """
import json, resource, sys
soft, hard, most = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from agentdouble import Emulator
from tests.agentdouble.calling import body_of, call, http, text
with Emulator(max_instances=1000) as double:
    for started in range(most):
        answer = call(double, body_of(double, "print(6 * 7)", f"s-{started}"))
        if answer.status_code != 200:
            break
    living = [text(double, "print(1)", f"s-{i}") for i in range(started)]
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    http.post(f"{double.url}/_emulator/reset").raise_for_status()
    again = text(double, "print(6 * 7)", "again")
    print(json.dumps({
        "started": started,
        "status": answer.status_code,
        "said": answer.json()["ResponseMetadata"].get("Error"),
        "living": living.count("1\\n"),
        "again": again,
        "limit": resource.getrlimit(resource.RLIMIT_NOFILE),
    }))
"""


def sessions_within(soft: int, hard: int, most: int = 1000) -> dict[str, Any]:
    """Start sessions in a process with this limit until one is refused."""
    command = [sys.executable, "-c", SESSIONS, *map(str, (soft, hard, most))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


@contextmanager
def descriptors_below_taken(number: int) -> Iterator[None]:
    """Use up every descriptor below a number."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2 * number), before[1]))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        while (descriptor := os.dup(0)) < number:
            stack.callback(os.close, descriptor)
        os.close(descriptor)
        yield


@pytest.mark.parametrize(("soft", "hard"), [(160, 4096), (160, 160)], ids=["soft", "hard"])
def test_sessions_are_refused_before_descriptors_run_out(soft: int, hard: int) -> None:
    """Running sessions continue, and new ones start once some end."""
    outcome = sessions_within(soft, hard)

    assert outcome["started"] > 3
    assert (429, "QuotaExceeded") == (outcome["status"], outcome["said"]["Code"])
    assert "Not enough open files" in outcome["said"]["Message"]
    assert "raise the limit of open files (ulimit -n" in outcome["said"]["Message"]
    assert (outcome["started"], "42\n") == (outcome["living"], outcome["again"])
    assert [soft, hard] == outcome["limit"]  # a process of somebody else's is not changed


@pytest.mark.parametrize("pool_size", [0, 1])
def test_sessions_start_with_descriptors_above_1023(pool_size: int) -> None:
    """This covers kernels, ready kernels, workbenches and JavaScript."""
    with descriptors_below_taken(1100), Emulator(pool_size=pool_size) as double:
        outputs = [text(double, "print(6 * 7)", f"s{i}") for i in range(4)]
        outputs.append(text(double, "console.log(6 * 7)", "js", language="javascript"))

    assert ["42\n"] * 5 == outputs
