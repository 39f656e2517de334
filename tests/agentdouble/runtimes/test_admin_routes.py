from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from agentdouble import Emulator
from agentdouble.core.clock import Clock
from agentdouble.processes.fork_server import processes
from agentdouble.runtimes.logs import ENDED, LINES, SIZE, InstanceLog, RuntimeLogs
from tests.agentdouble.calling import eventually, http
from tests.agentdouble.runtimes.asking import APPLICATIONS, shown_runtime

pytestmark = pytest.mark.smoke

TALKING = str(APPLICATIONS / "talking.py")


def table(name: str) -> dict[str, Any]:
    return {"name": name, "command": [sys.executable, TALKING], "max_instances": 1}


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator(runtimes=[table("talker"), table("counted"), table("idle")]) as double:
        yield double


def tell(double: Emulator, *lines: str, to: str = "stdout") -> None:
    """Have the application print, and wait until it has."""
    text = "".join(f"{line}\n" for line in lines)
    code = f"sys.{to}.write({text!r}); sys.{to}.flush()"
    assert "done" == http.post(f"{double.url}/runtimes/talker/", content=code).text


def ask(double: Emulator, **query: Any) -> httpx.Response:
    return http.get(f"{double.url}/_emulator/runtimes/talker/logs", params=query)


def printed(double: Emulator, last: str, **query: Any) -> list[dict[str, Any]]:
    """Return the lines once the last expected line is there."""

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in ask(double, **query).text.splitlines()]

    return eventually(read, lambda lines: lines and lines[-1]["text"] == last)


def logged(double: Emulator, name: str, last: str) -> list[str]:
    """Return a runtime's lines once the last one starts as expected."""
    return eventually(
        lambda: double.runtimes.logs(name), lambda lines: lines and lines[-1].startswith(last)
    )


def test_application_output_can_be_read(double: Emulator) -> None:
    """As JSON lines with stream and instance, or as text."""
    tell(double, "apple", "pear")
    printed(double, "pear")
    tell(double, "apple on fire", to="stderr")

    lines = printed(double, "apple on fire", instance="talker-1")
    text = ask(double, tail=1, format="text")

    assert [("talker-1", "stdout", "pear"), ("talker-1", "stderr", "apple on fire")] == [
        (line["instance"], line["stream"], line["text"]) for line in lines[-2:]
    ]
    assert text.text.endswith("Z talker-1 stderr apple on fire\n")
    assert "" == ask(double, tail=0).text


def test_crash_log_can_be_read(double: Emulator) -> None:
    """An instance's log survives it and says how it ended."""
    url = double.runtimes.create(**table("crashing"))
    http.post(url, content="sys.stderr.write('Traceback\\noh no\\n'); os._exit(3)")
    lines = logged(double, "crashing", "crashed")
    runtime = eventually(
        lambda: shown_runtime(double, "crashing"),
        lambda runtime: not runtime["instances"],
    )
    double.runtimes.delete("crashing")

    assert ["Traceback", "oh no", "crashed: its process ended with code 3"] == lines
    assert ["crashing-1"] == runtime["logs_of"]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"tail": "-1"}, "tail"),
        ({"instance": "nobody"}, "instance"),
        ({"follow": "true"}, "follow"),
    ],
    ids=str,
)
def test_invalid_parameters_are_refused(
    double: Emulator, query: dict[str, str], parameter: str
) -> None:
    """The 400 names the parameter and its valid values."""
    answer = ask(double, **query)

    assert (400, "BadRequest") == (answer.status_code, answer.json()["error"]["type"])
    assert f"The parameter {parameter!r} " in answer.json()["error"]["message"]
    assert len(answer.text) < 400


def test_runtimes_are_listed_with_their_usage(double: Emulator) -> None:
    """Each instance with its process, port, requests, memory and time."""
    tell(double, "here")
    talker, _, idle = eventually(
        lambda: http.get(f"{double.url}/_emulator/runtimes").json()["runtimes"],
        lambda table: not table[0]["instances"][0]["in_flight"],  # the answer was there before
    )
    (instance,) = talker["instances"]

    assert ("talker", "Ready", 1) == (talker["name"], talker["status"], talker["version"])
    assert [] == idle["instances"]
    processes.send(instance["pid"], 0)
    assert ("talker-1", "ready", 0, 1) == tuple(
        instance[key] for key in ("name", "state", "in_flight", "processes")
    )
    assert instance["memory_bytes"] > 2**20
    assert instance["age_s"] > 0


def samples(double: Emulator, runtime: str) -> dict[str, float]:
    """Return the samples of a runtime, by name and labels."""
    answer = http.get(f"{double.url}/_emulator/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    stats = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation
        assert "unknown" != family.type
        for sample in family.samples:
            labels = dict(sample.labels)
            if labels.pop("runtime") == runtime:
                name = sample.name.removeprefix("agentdouble_runtime_")
                stats[" ".join((name, *labels.values()))] = sample.value
    return stats


def test_requests_are_counted_and_measured(double: Emulator) -> None:
    """By status, with durations, cold starts and resource usage; no samples for others."""
    url = f"{double.url}/runtimes/counted/"
    for status in ("200", "200", "404", "503"):
        http.get(url, headers={"status": status})

    stats = eventually(  # the last answer was there before it was counted
        lambda: samples(double, "counted"), lambda stats: not stats["requests_in_flight"]
    )

    assert {
        "requests_total 200": 2,
        "requests_total 404": 1,
        "requests_total 503": 1,
        "errors_total application": 1,
        "requests_in_flight": 0,
        "request_duration_seconds_count": 4,
        "request_duration_seconds_bucket +Inf": 4,
        "first_byte_seconds_count": 4,
        "queue_wait_seconds_count": 4,
        "cold_starts_total": 1,
        "start_duration_seconds_count true": 1,
        "instances ready": 1,
        "processes": 1,
    }.items() <= stats.items()
    assert stats["memory_bytes"] > 2**20
    assert stats["cpu_seconds_total"] > 0
    assert stats["start_duration_seconds_sum true"] > stats["request_duration_seconds_sum"] / 1000
    assert 0 == samples(double, "idle")["request_duration_seconds_count"]
    assert {} == samples(double, "nobody")


def test_failures_are_counted_by_kind(double: Emulator) -> None:
    """Failed start, crash during a request, disconnected caller."""
    double.runtimes.create("broken", command=[sys.executable, "-c", "raise SystemExit(3)"])
    url = double.runtimes.create(**table("failing"))
    unstarted = http.get(f"{double.url}/runtimes/broken/")
    lost = http.post(url, content="os._exit(1)")
    with pytest.raises(httpx.ReadTimeout):
        http.post(url, content="__import__('time').sleep(60)", timeout=0.5)
    stats = eventually(
        lambda: samples(double, "failing"), lambda stats: "errors_total gone" in stats
    )
    broken = samples(double, "broken")
    words = double.runtimes.logs("broken")
    double.runtimes.delete("broken")
    double.runtimes.delete("failing")

    assert ["unstarted: its process ended with code 3"] == words
    assert (502, 502) == (unstarted.status_code, lost.status_code)
    assert (1, 1, 0) == tuple(
        stats[name] for name in ("errors_total lost", "requests_total 499", "requests_in_flight")
    )
    assert 1 == stats["instances_ended_total crashed"]
    assert (1, 1) == (broken["errors_total start"], broken["requests_total 502"])


def test_runtime_code_cannot_read_about_other_runtimes(double: Emulator) -> None:
    """The double's own routes refuse it (HST-03)."""
    tell(double, "private")
    opener = "import urllib.request as u; o = u.build_opener(u.ProxyHandler({}))"
    code = f"""{opener}
try:
    sys.stderr.write(o.open('{double.url}/_emulator/runtimes/talker/logs').read().decode())
except Exception as error:
    sys.stderr.write(str(error) + chr(10))
sys.stderr.flush()"""
    http.post(f"{double.url}/runtimes/counted/", content=code)

    assert ["HTTP Error 401: Unauthorized"] == logged(double, "counted", "")


def test_instance_over_its_memory_limit_is_killed(double: Emulator) -> None:
    """With all its processes, and the reason in its log; the next request starts another."""
    url = double.runtimes.create(**table("limited"), memory_limit=64 * 2**20)
    code = "if not os.fork(): kept = b'x' * (100 * 2**20); __import__('signal').pause()"
    first = shown_runtime(double, "limited")["instances"]
    http.post(url, content=code)
    lines = logged(double, "limited", "memory")
    http.get(url)

    assert [] == first
    assert lines[-1].startswith("memory: its process ended with signal ")
    assert lines[-2].endswith(" MiB, and its limit is 64 MiB")
    assert 1 == samples(double, "limited")["instances_ended_total memory"]
    assert 1 == samples(double, "limited")["instances ready"]
    double.runtimes.delete("limited")
    assert {} == samples(double, "limited")


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
