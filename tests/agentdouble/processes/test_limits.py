"""A double starts processes of each kind under whatever limits it was started with."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.agentdouble.processes.becoming import ORDINARY, ROOT
from tests.agentdouble.processes.every_process import ANSWERS, answers

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="limits differ on other systems"),
]

LIMITS = "-u 200 -n 400 -f 10240 -d 4194304 -s 2048 -t 600 -c 0 -l 0 -i 100"


@pytest.mark.slow
@pytest.mark.parametrize("uid", [ROOT, ORDINARY], ids=["root", "ordinary user"])
def test_hard_limits_below_those_of_sessions_stay(uid: int) -> None:
    if os.geteuid() != ROOT and uid == ROOT:
        pytest.skip("needs root")
    wrapper = ("bash", "-c", f'ulimit -H -S {LIMITS} && exec "$@"', "bash")

    ran = answers(uid, *wrapper)

    assert ran.stdout, ran.stderr
    assert ANSWERS == json.loads(ran.stdout)


@pytest.mark.slow
def test_a_bash_tells_nothing_of_a_limit_of_memory_that_is_lower_already() -> None:
    """The engine of JavaScript reserves more than that, and says which limit it was."""
    wrapper = ("bash", "-c", 'ulimit -v 3000000 && exec "$@"', "bash")

    ran = answers(os.geteuid(), *wrapper)

    hint = "the JavaScript engine was killed by signal 5; ulimit -v may be too low for it"
    assert ran.stdout, ran.stderr
    assert {**ANSWERS, "javascript": hint} == json.loads(ran.stdout)
