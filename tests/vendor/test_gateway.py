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
