"""A test is saved after its calls were repeated, and asserts nothing that changes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agentdouble import SimpleApp
from doublecheck import Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.errors import RefusedError

pytestmark = pytest.mark.once

RUN_FIVE_TIMES = """
def pytest_generate_tests(metafunc):
    metafunc.fixturenames.append("nth")
    metafunc.parametrize("nth", range(5))
"""
CHANGING = """
import os, random, secrets, time
print("begin")
print(time.time(), random.random(), secrets.token_urlsafe(16))
print("end")
"""
APPLICATION = """
import itertools
from agentdouble import SimpleApp

app = SimpleApp("counting")
calls = itertools.count()


@app.entrypoint
async def answer(payload, headers):
    return {"prompt": payload["prompt"], "call": next(calls), "at": "noon"}
"""
SERVING_IT = """
import pytest
from doublecheck import PlatformConfig


@pytest.fixture(scope="session")
def platform_config():
    return PlatformConfig(apps=["counting:app"])
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    app = SimpleApp("other")

    @app.entrypoint
    async def answer(payload: dict[str, object], headers: object) -> object:
        return {"prompt": payload["prompt"], "call": 7, "at": "midnight"}

    with serving_double(app) as target:
        yield target


@pytest.fixture
def client(target: Target) -> Iterator[Platform]:
    with Platform(target) as platform:
        platform.reset()
        platform.exchanges.clear()
        yield platform


def outcome(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.stdout


def test_a_saved_test_passes_five_times_in_a_row(client: Platform, tmp_path: Path) -> None:
    """What the code prints anew each time is left out, the lines around it are not."""
    client.run_code(CHANGING)
    client.run_code("time.perf_counter()")
    client.run_code("raise ValueError(random.random())")
    client.run_code("6 * 7")
    session = client.create_session("echo")
    client.run(session, "hello")
    client.request("GET", f"/apps/echo/users/anonymous/sessions/{session.id}")
    client.request("GET", "/apps/echo/users/nobody/sessions/none")
    with client.mcp() as mcp:
        mcp.call("coder", prompt="import random; print(random.random())")
    saved = client.save_test(tmp_path / "test_saved.py")
    (tmp_path / "conftest.py").write_text(RUN_FIVE_TIMES)
    text = saved.read_text("utf-8")

    assert "# The calls were repeated 3 times when this was written" in text
    assert 'assert ["begin", ANY, "end"] == result_1.stdout.splitlines()' in text
    assert "_ = result_2.text  # not compared: it changes from one time to the next" in text
    assert '"ValueError" == result_3.error.ename' in text
    assert 'assert "42" == result_4.text' in text
    assert "5 passed" in outcome(tmp_path, saved.name)
    left = {one.name for one in tmp_path.iterdir()} - {"__pycache__"}  # pytest's own
    assert {"conftest.py", "test_saved.py"} == left


def test_a_project_s_own_application_answers_the_repeats(client: Platform, tmp_path: Path) -> None:
    """What it says differently each time is ANY; the rest is what was recorded."""
    (tmp_path / "counting.py").write_text(APPLICATION)
    (tmp_path / "conftest.py").write_text(SERVING_IT)
    client.invoke("hello")
    text = client.save_test(tmp_path / "test_saved.py").read_text("utf-8")

    recorded = '{"prompt": "hello", "call": ANY, "at": "midnight"}'
    assert f'assert {recorded} == platform.invoke("hello")' in text
    assert "1 failed" in outcome(tmp_path, "test_saved.py")  # it is another application


def test_what_was_repeated_and_saved_is_clean_for_ruff(client: Platform, tmp_path: Path) -> None:
    """Whoever saves it has nothing to tidy up."""
    pytest.importorskip("ruff")
    client.run_code(CHANGING)
    with suppress(RefusedError):
        client.run_code("x", "cobol")
    saved = client.save_test(tmp_path / "test_saved.py")

    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select"]
    command = [*ruff, "E4,E7,E9,F,I,B", str(saved)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "All checks passed!" == checked.stdout.strip()


def test_no_platform_that_runs_is_asked_again(
    client: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the environment is left out; one of the project is not reset for a trial."""
    monkeypatch.setenv("DOUBLECHECK_URL", client.url)
    client.run_code("x = 1")
    client.run_code("x", session_id="default")
    repeated = client.save_test(tmp_path / "test_first.py").read_text("utf-8")
    monkeypatch.delenv("DOUBLECHECK_URL")
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.doublecheck]\nkind = 'double'\nurl = '{client.url}'\n"
    )
    refused = client.save_test(tmp_path / "test_second.py").read_text("utf-8")

    assert "# The calls were repeated 3 times" in repeated
    assert re.search(r"# 'the tests here ask the platform at http.*, and not a double", refused)
    assert 'assert "1" == result_2.text' in refused
    assert "1" == client.run_code("x").text


def test_a_call_that_fails_when_repeated_is_told(client: Platform, tmp_path: Path) -> None:
    """What came before it was repeated, what comes after it is asserted as it was."""
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom doublecheck import PlatformConfig\n\n\n"
        "@pytest.fixture(scope='session')\ndef platform_config():\n"
        "    return PlatformConfig(settings={'max_instances': 1})\n"
    )
    client.run_code(CHANGING, session_id="a")
    client.run_code("1", session_id="b")
    text = client.save_test(tmp_path / "test_saved.py").read_text("utf-8")

    assert "# When this was written, the calls could not be repeated to the end:" in text
    assert "RefusedError" in text
    assert '["begin", ANY, "end"]' in text
    assert 'assert "1" == result_2.text' in text
