"""check(): run the contract checks from Python and from notebooks."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

import doublecheck
from doublecheck.contracts.verdicts import Verdict
from doublecheck.run import checks_process
from tests.doublecheck.notebook.kernels import notebook_kernel

pytestmark = pytest.mark.once

SECRET = "of-nobody-but-us"


@pytest.fixture(scope="module")
def report(platform_server: doublecheck.Target) -> doublecheck.results.Report:
    """The report of some checks of a double in this process; CTL-01 needs its keys."""
    with doublecheck.Platform(platform_server) as platform:
        return doublecheck.check(platform, only="PRB-01 or PRB-05 or CTL-01")


def test_an_existing_platform_is_checked_with_its_keys(
    report: doublecheck.results.Report, platform_server: doublecheck.Target
) -> None:
    """Checks that it cannot show are not observable."""
    expected = {
        "PRB-01": Verdict.PASSED,
        "PRB-05": Verdict.NOT_OBSERVABLE,
        "CTL-01": Verdict.PASSED,
    }

    assert (platform_server.url, "double") == (report.url, report.kind)
    assert expected == report.verdicts
    assert () == report.failed


def test_cancelling_ends_the_process_of_the_checks(
    platform_server: doublecheck.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: list[psutil.Process] = []

    async def cancelled() -> None:
        started, loop = asyncio.Event(), asyncio.get_running_loop()

        class Begun(checks_process.ChecksProcess):
            def progress(self) -> Iterator[tuple[int, int, str]]:
                processes.append(psutil.Process(self._process.pid))
                loop.call_soon_threadsafe(started.set)
                return super().progress()

        monkeypatch.setattr(checks_process, "ChecksProcess", Begun)
        async with doublecheck.AsyncPlatform(platform_server) as platform:
            checking = asyncio.ensure_future(platform.check(only="PRB"))
            await started.wait()
            checking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await checking

    asyncio.run(cancelled())

    assert [False] == [process.is_running() for process in processes]


def test_keys_are_not_passed_as_arguments(
    platform: doublecheck.Platform, monkeypatch: pytest.MonkeyPatch
):
    """Nor in the environment. Variables that name another platform are not passed on."""
    monkeypatch.setenv("DOUBLECHECK_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PLATFORM_SECRET_KEY", "another")
    keys = doublecheck.Credentials("AK", SECRET)
    target = dataclasses.replace(
        platform.target, credentials=keys, api_key=doublecheck.Secret(SECRET)
    )

    visible: list[tuple[list[str], dict[str, str]]] = []

    def on_begun(process: checks_process.ChecksProcess) -> None:
        begun = psutil.Process(process._process.pid)
        visible.append((begun.cmdline(), begun.environ()))

    report = checks_process.check_target(target, only="PRB-01", on_begun=on_begun)

    ((arguments, environ),) = visible
    assert [] == [text for text in (*arguments, *environ.values()) if SECRET in text]
    assert not {"DOUBLECHECK_URL", "PLATFORM_SECRET_KEY"} & environ.keys()
    assert report.run.checks


def test_a_crashed_process_is_reported_with_its_output(
    platform: doublecheck.Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")

    with pytest.raises(doublecheck.errors.ChecksCrashedError) as raised:
        doublecheck.check(platform, only="PRB-01")

    assert (1, True) == (raised.value.code, any("Fatal" in line for line in raised.value.lines))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"platform": "http://127.0.0.1:9"}, "Nothing answers at http://127.0.0.1:9"),
        ({"platform": "http://127.0.0.1:9", "target": "live"}, "remove one."),
        ({"platform": 5}, "5 is not a platform"),
        ({"level": "smoke", "strict_should": True}, "level smoke skips most recommendations"),
        ({"target": "nowhere"}, "Unknown target 'nowhere'"),
        ({"target": "live"}, "target live needs a running platform"),
    ],
)
def test_invalid_arguments_are_refused_before_anything_starts(wrong: dict, text: str) -> None:
    """The message has the remedy."""
    with pytest.raises(doublecheck.DoubleCheckError, match=re.escape(text)):
        doublecheck.check(**wrong)


@pytest.mark.slow
def test_an_interrupted_cell_leaves_no_processes() -> None:
    """The error says how many checks ran."""
    processes: list[psutil.Process] = []
    arguments: list[dict[str, Any]] = []
    with notebook_kernel() as notebook:
        notebook.run("import doublecheck, os")
        kernel = psutil.Process(int(notebook.run("os.getpid()").text))
        for _, content in notebook.running("doublecheck.check(only='test_sandbox')"):
            arguments.append(content)
            bar = content.get("data", {}).get("text/plain", "")
            if not processes and re.search(r": [1-9]\d*/", bar):  # code has run
                processes = kernel.children(recursive=True)
                notebook.interrupt()
        _, alive = psutil.wait_procs(processes, timeout=60)

    assert "InterruptedChecksError" == arguments[-1]["ename"]
    message = r"Interrupted: \d+ of \d+ checks ran\. .*"
    assert re.fullmatch(message, arguments[-1]["evalue"])
    assert "" == arguments[-2]["data"]["text/plain"]
    assert len(processes) > 2
    assert [] == alive
