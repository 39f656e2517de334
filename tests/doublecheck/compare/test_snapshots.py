"""Differences between platforms in what becomes of sessions and their snapshots."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from doublecheck import Platform
from doublecheck.client.doubles import serving_double
from doublecheck.compare.conversation import Topic
from doublecheck.compare.differences import Class
from doublecheck.compare.run import run

pytestmark = [pytest.mark.slow, pytest.mark.needs("files", "pid_namespace")]


def act(platform: Platform, action: str, **fields: Any) -> Mapping[str, Any]:
    return platform._act(action, fields, lambda result: result)


def begin(platform: Platform) -> str:
    session_id: str = act(platform, "CreateSession", UserSessionId="u")["SessionId"]
    return session_id


def resume_after_deletion(platform: Platform) -> None:
    """Take a snapshot, delete the session and resume it."""
    session = begin(platform)
    snapshot = act(platform, "CreateSessionSnapshot", SessionId=session)["SnapshotId"]
    act(platform, "DeleteSession", SessionId=session)
    act(platform, "ResumeSessionFromSnapshot", SnapshotId=snapshot, CreateNewInstance=False)


def expire(platform: Platform) -> None:
    """Let a session expire and look for its snapshot."""
    begin(platform)
    with Platform(dataclasses.replace(platform.target, kind="double")) as owner:
        owner.clock.advance(minutes=31)
    act(platform, "ListSessionSnapshots", UserSessionId="u")


@pytest.mark.parametrize(
    ("talk", "unknown", "answer"),
    [
        (resume_after_deletion, "U-SNAPSHOT-ENDED", "new-session-id"),
        (expire, "U-SNAPSHOT-AUTOMATIC", "never"),
    ],
)
def test_the_unknown_explains_the_difference(talk: Any, unknown: str, answer: str) -> None:
    with (
        serving_double() as first,
        serving_double(unknowns={unknown: answer}) as second,
        Platform(first) as base,
        Platform(dataclasses.replace(second, kind="live", name="live")) as two,
    ):
        comparison = run([Topic("it", (), talk)], base, two, allow_writes=True)

    assert Class.ASSUMED is comparison.cls, comparison
    reasons = {difference.because for call in comparison.calls for difference in call.differences}
    assert {unknown} == {str(reason).split(" ")[0] for reason in reasons}
