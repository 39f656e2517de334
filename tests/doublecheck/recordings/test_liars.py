"""A recording of a platform that lies diverges when it is replayed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from doublecheck import Platform, Target
from doublecheck.cli.app import app
from doublecheck.comparing.differences import Class
from doublecheck.recordings import recording_file, replay
from doublecheck.twins.comparison import Comparison
from tests.doublecheck.recordings.conftest import Recorder
from tests.doublecheck.twins.liar import LIES, Liar, seen_as_live, serving_liar, talk

pytestmark = pytest.mark.libraries

Start = Callable[[Target], Recorder]


@pytest.fixture(scope="module")
def liar(live: Target) -> Iterator[Liar]:
    with serving_liar(live.url) as liar:
        yield liar


@pytest.fixture
def recorded(live: Target, liar: Liar, recorder: Start) -> Recorder:
    """A recording of the liar, whose sessions are new."""
    with Platform(dataclasses.replace(live, kind="double")) as behind:
        behind.reset()
    return recorder(seen_as_live(live, liar))


def replayed(path: Path, double: Target) -> Comparison:
    with Platform(double) as platform:
        platform.reset()
        return replay.replay_recording(recording_file.read(path), platform)


def test_a_double_is_the_same_as_its_own_recording(recorded: Recorder, double: Target) -> None:
    """Whatever ids it has this time."""
    with recorded.client() as client:
        talk(client)

    comparison = replayed(recorded.path, double)

    assert {Class.SAME: 8} == comparison.counts()


@pytest.mark.parametrize("lie", LIES)
def test_a_recorded_lie_diverges(recorded: Recorder, double: Target, liar: Liar, lie: str) -> None:
    """With the operation and the path."""
    told, operation, path = LIES[lie]
    with recorded.client() as client, liar.telling(told):
        talk(client)

    comparison = replayed(recorded.path, double)

    found = [
        (call.operation, one.path)
        for call in comparison.calls
        for one in call.differences
        if not one.cls.harmless
    ]
    assert (operation, path) in found
    assert not comparison.cls.harmless


def test_a_recording_that_is_edited_is_exit_code_1(recorded: Recorder, double: Target) -> None:
    """With both values."""
    with recorded.client() as client:
        list(client.run_sse(client.create_session("echo"), "THE ANSWER"))
    words = ["replay", str(recorded.path), "--url", double.url]

    true = CliRunner().invoke(app, words)
    head, created, run = recorded.path.read_text("utf-8").splitlines()
    asked, answered = run.split('"response"')
    wrong = answered.replace("THE ANSWER", "THE WRONG ANSWER")
    recorded.path.write_text("\n".join([head, created, f'{asked}"response"{wrong}']), "utf-8")
    edited = CliRunner().invoke(app, words)

    assert (0, 1) == (true.exit_code, edited.exit_code), edited.output
    assert all(one in edited.output for one in ("POST /run_sse", "THE ANSWER", "THE WRONG ANSWER"))
