"""veadk's clients of sandbox sessions."""

from __future__ import annotations

from tests.vendor.conftest import Run


def test_a_lease_is_reused_moved_and_made_anew(run: Run) -> None:
    """It moves to another UserSessionId before the end of a lifetime, and never relies on use."""
    assert {
        "status": "Ready",
        "shape": True,
        "lifetime": True,
        "printed": "42\n",
        "reused": True,
        "kept": "42\n",
        "moved": True,
        "long enough": True,
        "fresh": "False\n",
        "newest is taken": True,
        "new after expiry": True,
        "ready after expiry": "Ready",
    } == run("leases")


def test_the_built_in_tools_run_code_and_commands(run: Run) -> None:
    """One user session has one sandbox; a Ttl that is sent again moves no deadline."""
    assert {
        "is text": True,
        "user session": "agent_ann_s1",
        "one session": "42\n",
        "shell": "/tmp\n",
        "shell with a variable": "hello\n",
        "exit code": 3,
        "error": "ZeroDivisionError",
        "endpoint": "2\n",
        "same endpoint": True,
        "other endpoint": True,
        "a repeated Ttl renews nothing": True,
    } == run("tools")


def test_commands_are_waited_for_and_long_output_is_fetched(run: Run) -> None:
    assert {
        "started": ["running", True],
        "waited": "completed",
        "short": "hello",
        "long": 200_000,
    } == run("transport")
