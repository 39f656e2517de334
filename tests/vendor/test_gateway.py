"""veadk's gateway of cloud sandboxes."""

from __future__ import annotations

from tests.vendor.conftest import Run


def test_the_gateway_creates_renews_and_deletes_sessions(run: Run) -> None:
    """It renews in the last hour only, and takes 'not found' for gone."""
    assert {
        "created": ["Ready", True],
        "read": ["Ready", "CodeEnv"],
        "lifetime": True,
        "listed": [True],
        "not renewed": True,
        "renewed": True,
        "variable": "hello\n",
        "gone": True,
        "left": 0,
    } == run("gateway")


def test_sessions_are_listed_for_their_owner(run: Run) -> None:
    """The metadata comes back, too."""
    assert {
        "ann": [["ann", "Ann", "Sandbox of ann", "codex"]],
        "bob": [["bob", "Bob", "Sandbox of bob", "codex"]],
        "eve": [],
        "all": 2,
        "read": "ann",
    } == run("owners")


def test_an_expired_session_wakes_with_its_state(run: Run) -> None:
    """It keeps its SessionId and its UserSessionId."""
    assert {
        "veadk": {
            "snapshots before": 0,
            "snapshot": ["Ready", "Expired", "ann", "sleeper"],
            "of the session": [True, True],
            "same session": True,
            "same user session": True,
            "kernel": "42\n",
            "file": "kept\n",
            "no second": True,
            "left": 0,
        },
        "agentkit": {"is new": [True, False, True], "same": [True, True], "file": "kept\n"},
    } == run("sleeping")


def test_snapshots_are_waited_for_copied_and_restored(run: Run) -> None:
    """A copy is found by the UserSessionId of its snapshot."""
    assert {
        "first status": "Creating",
        "then": "Ready",
        "copy": True,
        "found by the user session": True,
        "restored": True,
        "refused without EnableSnapshot": True,
    } == run("snapshots")
