from __future__ import annotations

import pytest

from agentdouble.core.clock import Clock
from agentdouble.runtimes.logs import ENDED, LINES, SIZE, InstanceLog, RuntimeLogs


@pytest.fixture
def logs() -> RuntimeLogs:
    return RuntimeLogs(Clock())


@pytest.fixture
def log(logs: RuntimeLogs) -> InstanceLog:
    return logs.open("a-1")


def texts(logs: RuntimeLogs) -> list[str]:
    return [line.text for line in logs.read(tail=LINES)]


def test_lines_are_kept_once_complete(logs: RuntimeLogs, log: InstanceLog) -> None:
    """However they were split; at the end of the stream the rest is a line."""
    log.feed("stdout", b"one\r\ntw")
    log.feed("stderr", b"trace\n")
    log.feed("stdout", b"o\n\nlast")
    before = texts(logs)
    log.feed("stdout", b"")

    assert ["one", "trace", "two", ""] == before
    assert [
        (1, "stdout", "one"),
        (2, "stderr", "trace"),
        (3, "stdout", "two"),
        (4, "stdout", ""),
        (5, "stdout", "last"),
    ] == [(line.number, line.stream, line.text) for line in logs.read()]


def test_newest_output_is_kept(logs: RuntimeLogs, log: InstanceLog) -> None:
    """Limited by lines and by bytes."""
    for number in range(LINES + 5):
        log.feed("stdout", b"%d\n" % number)
    short = texts(logs)
    for _ in range(100):
        log.feed("stdout", b"x" * 50_000 + b"\n")

    assert (LINES, "5", str(LINES + 4)) == (len(short), short[0], short[-1])
    assert SIZE // 2 < sum(map(len, texts(logs))) <= SIZE


def test_logs_of_ended_instances_are_kept_for_a_while(logs: RuntimeLogs) -> None:
    """So that a crash can be read; they do not displace living instances' logs."""
    living = logs.open("living")
    living.feed("stdout", b"still here\n")
    for number in range(3 * ENDED):
        log = logs.open(f"a-{number}")
        log.feed("stderr", b"Traceback\n")
        for stream in ("stdout", "stderr"):
            log.feed(stream, b"")

    names = [f"a-{number}" for number in range(2 * ENDED, 3 * ENDED)]
    assert ("living", *names) == logs.instances
    assert "still here" in texts(logs)
