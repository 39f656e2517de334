from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.clock import Clock
from agentdouble.runtimes.logs import ENDED, LINES, SIZE, InstanceLog, RuntimeLogs
from tests.agentdouble.calling import eventually
from tests.agentdouble.runtimes.asking import ask, asking


@pytest.fixture
def logs() -> RuntimeLogs:
    return RuntimeLogs(Clock())


@pytest.fixture
def log(logs: RuntimeLogs) -> InstanceLog:
    return logs.open("a-1")


def texts(logs: RuntimeLogs) -> list[str]:
    return [line.text for line in logs.read()]


def test_a_line_is_kept_when_it_has_ended(logs: RuntimeLogs, log: InstanceLog) -> None:
    """However it was cut on its way; at the end of the stream what is left is a line."""
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


def test_what_is_no_text_is_kept_all_the_same(logs: RuntimeLogs, log: InstanceLog) -> None:
    """Colours as they are, wrong UTF-8 as U+FFFD, NUL bytes."""
    log.feed("stdout", b"\x1b[31mred\x1b[0m\n\xff\xfe\x00\n")

    assert ["\x1b[31mred\x1b[0m", "\ufffd\ufffd\x00"] == texts(logs)


def test_a_line_without_end_goes_on_in_the_next(logs: RuntimeLogs, log: InstanceLog) -> None:
    """No character is cut in two, and no more than some KiB wait for the end."""
    for _ in range(10):
        log.feed("stdout", ("é" * 10_000).encode()[1:] + b"\xc3")
    log.feed("stdout", b"")

    assert "é" * 99_999 in "".join(texts(logs))
    assert max(map(len, texts(logs))) < 40_000


@pytest.mark.parametrize("piece", [b"x" * 79 + b"\n", b"\n", b"x"], ids=["lines", "empty", "one"])
def test_a_flood_costs_no_memory(logs: RuntimeLogs, log: InstanceLog, piece: bytes) -> None:
    """The newest is kept, and the first line says how many were dropped."""
    flood = piece * (65536 // len(piece))
    tracemalloc.start()
    for _ in range(320):  # 20 MiB
        log.feed("stdout", flood)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    first, *kept = logs.read(tail=10**9)
    assert peak < 2 * SIZE
    assert ("double", f"… {log.dropped:,} lines dropped") == (first.stream, first.text)
    assert log.printed == log.dropped + len(kept)
    assert len(kept) <= max(LINES, 65536)


def test_a_program_that_floods_its_log_disturbs_no_other(tmp_path: Path) -> None:
    """Another runtime answers meanwhile, and the end of the flood is there."""
    for name in ("flooding", "quiet"):
        (tmp_path / name).mkdir()
    tables = [asking(name, tmp_path / name) for name in ("flooding", "quiet")]
    flood = "[print('x' * 99) for _ in range(40_000)] and print('last')"
    with Emulator(runtimes=tables) as double, ThreadPoolExecutor() as pool:
        flooding = pool.submit(ask, double, "flooding", flood)
        answers = {ask(double, "quiet", "1 + 1") for _ in range(20)}
        flooding.result()
        first, *_, last = eventually(
            lambda: double.runtimes.logs("flooding", tail=10**6), lambda said: "last" in said[-1:]
        )

    assert {2} == answers
    assert ("last", True) == (last, first.endswith("lines dropped"))


def test_single_lines_are_bounded_as_well(logs: RuntimeLogs, log: InstanceLog) -> None:
    """By what they cost besides their text."""
    for number in range(2 * LINES):
        log.feed("stdout", b"%d\n" % number)

    assert log.dropped > LINES
    assert str(2 * LINES - 1) == texts(logs)[-1]


def test_logs_of_the_ended_are_kept_for_a_while(logs: RuntimeLogs) -> None:
    """So that a crash can be read; the living are not forgotten for them."""
    living = logs.open("living")
    living.feed("stdout", b"still here\n")
    for number in range(3 * ENDED):
        one = logs.open(f"a-{number}")
        one.feed("stderr", b"Traceback\n")
        for stream in ("stdout", "stderr"):
            one.feed(stream, b"")

    names = [f"a-{number}" for number in range(2 * ENDED, 3 * ENDED)]
    assert ("living", *names) == logs.instances
    assert "still here" in texts(logs)
