from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentdouble.runtimes import readiness
from agentdouble.runtimes.readiness import free_port


def chosen() -> int:
    with free_port() as port:
        return port


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere chance keeps them apart")
def test_instances_that_start_at_once_have_ports_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of whichever doubles they are, and though chance would give them the same."""

    def alike(among: Sequence[int], count: int) -> list[int]:
        return list(among[:count])

    monkeypatch.setattr(readiness._random, "sample", alike)
    with free_port() as one, free_port() as other:
        assert one != other


def test_processes_that_are_seeded_alike_do_not_choose_alike() -> None:
    """As the workers of a test run are."""
    found = []
    for _ in range(2):
        random.seed(1)
        found.append([chosen() for _ in range(5)])

    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("given", "among"),
    [
        ("32768\t60999\n", range(20_000, 32_768)),
        ("16000\t65535\n", range(10_000, 16_000)),
        ("1024\t65535\n", range(20_000, 32_768)),
        ("49152\t65535\n", range(20_000, 32_768)),
    ],
)
def test_a_port_is_none_that_a_connection_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str, among: range
) -> None:
    """As far as this system leaves any; it might be taken before the instance binds it."""
    (tmp_path / "range").write_text(given)
    monkeypatch.setattr(readiness, "_GIVEN_FROM", tmp_path / "range")

    assert chosen() in among
