"""twin(): the same said to two platforms from Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import doublecheck
from doublecheck import Platform, Target
from doublecheck.twins import scripts
from doublecheck.twins.conversation import Topic

pytestmark = pytest.mark.libraries

SCRIPT = '[[step]]\npath = "/ping"\n\n[[step]]\npath = "/invoke"\njson = { prompt = "print(1)" }\n'


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    return path


def test_platforms_in_hand_are_held_to_each_other(platform: Platform, script: Path) -> None:
    """They keep the exchanges that they have."""
    platform.ping()
    kept = len(platform.exchanges)

    found = doublecheck.twin(platform, platform, script=script)

    assert "<Comparison same: 2 calls, 2 same>" == repr(found)
    assert kept == len(platform.exchanges)


def test_a_live_platform_is_changed_only_if_that_was_said(platform: Platform, script: Path) -> None:
    """The part says how."""
    with Platform(dataclasses.replace(platform.target, kind="live", name="live")) as live:
        asked = doublecheck.twin(platform, live, script=script)
        changed = doublecheck.twin(platform, live, script=script, allow_writes=True)

    assert "allow_writes=True" in str(asked.parts[1].skipped)
    assert [1, 1] == [len(part.calls) for part in changed.parts]


def test_an_interrupted_twin_keeps_what_it_has(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts that were over are in the error."""

    def interrupted(_: Platform) -> None:
        raise KeyboardInterrupt

    def read(_: Path) -> Sequence[Topic]:
        talks: tuple[Callable[[Platform], object], ...] = (Platform.ping, interrupted)
        return [Topic(talk.__name__, (), talk) for talk in talks]

    monkeypatch.setattr(scripts, "read", read)

    with pytest.raises(doublecheck.errors.InterruptedTwinError, match="1 of 2 parts") as raised:
        doublecheck.twin(platform, platform, script="any")

    assert ["ping"] == [part.name for part in raised.value.comparison.parts]


def test_what_cannot_be_meant_is_refused(platform: Platform) -> None:
    """In a line that says what to do."""
    live = Platform(Target("http://127.0.0.1:9", "live"))
    cases = [
        (lambda: doublecheck.twin(platform), "Name the platform to compare the double with"),
        (lambda: doublecheck.twin(live, platform), "pass the double first"),
        (lambda: doublecheck.twin(platform, live), "Nothing answers at http://127.0.0.1:9"),
        (lambda: doublecheck.twin(platform, platform, target="x"), "say one of them"),
        (lambda: doublecheck.twin(platform, 5), "5 is no platform"),  # type: ignore[arg-type]
        (lambda: doublecheck.twin(platform, platform, script="none.toml"), "cannot be read"),
    ]
    with live:
        for ask, told in cases:
            with pytest.raises(doublecheck.DoubleCheckError, match=told):
                ask()
