"""Entries of a journal as a test, for a double's console."""

from __future__ import annotations

from importlib.metadata import entry_points

import httpx
import pytest

from agentdouble.console.saved_tests import GROUP, NAME
from doublecheck.client.doubles import serving_double
from doublecheck.errors import SaveError
from doublecheck.recordings.journal_tests import module_of


def test_it_is_installed_for_the_console() -> None:
    """By the entry point that the console looks for."""
    (found,) = entry_points(group=GROUP, name=NAME)

    assert found.load() is module_of


def test_a_conversation_is_a_test() -> None:
    """It is named by its last request."""
    with serving_double() as target, httpx.Client(base_url=target.url) as client:
        path = "/apps/coder/users/ann/sessions"
        client.post(path, json={"sessionId": "mine"})
        client.get(f"{path}/mine")
        client.get("/")
        entries = client.get("/_emulator/journal?bodies=true").json()["entries"]

    text = module_of(entries[:2])

    compile(text, "test_it.py", "exec")
    assert "def test_apps_coder_users_ann_sessions_mine(platform: Platform)" in text
    assert "platform.create_session" in text
    assert "def test_request(" in module_of(entries)


def test_what_is_no_entry() -> None:
    """Is refused with its place."""
    with pytest.raises(SaveError, match="entry 1: KeyError"):
        module_of([{"url": "/"}])
