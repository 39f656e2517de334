from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from doublecheck import Platform, Target
from doublecheck.cli.app import app
from doublecheck.client.doubles import serving_double
from doublecheck.errors import RefusedError, SaveError
from doublecheck.recordings import exchange_files
from doublecheck.saved_tests import module
from doublecheck.saved_tests.literals import literal
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

pytestmark = pytest.mark.once

HOSTILE = "'''; import os; os.abort() \"\"\"\n\\ \u202e \x1b[31m {platform}"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double() as target:
        yield target


@pytest.fixture
def platform_(target: Target) -> Iterator[Platform]:
    with Platform(target) as platform:
        platform.reset()
        platform.exchanges.clear()
        yield platform


def outcome(saved: Path) -> str:
    """What pytest says in the end; in a process of its own, for protobuf is imported only once."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", saved.name]
    ended = subprocess.run(words, cwd=saved.parent, capture_output=True, text=True, check=False)
    return ended.stdout


def talk(platform: Platform) -> None:
    """Something of everything, in words that try to get out of their quotes."""
    platform.ping()
    platform.list_apps()
    session = platform.create_session("echo", state={"key": HOSTILE})
    platform.run(session, HOSTILE)
    list(platform.run_sse(session, "one two three", streaming=True))
    platform.get_session("echo", session.id)
    platform.list_sessions("echo")
    platform.list_artifacts(session)
    platform.delete_session(session)
    with suppress(RefusedError):
        platform.invoke("", headers={"x-custom": '"quoted"'})
    platform.run_code(f"x = {HOSTILE!r}\nprint(x)\n6 * 7", session_id="s")
    platform.run_code("import uuid, os\nprint(uuid.uuid4())\n1 / 0", session_id="s")
    with suppress(RefusedError):
        platform.run_code("x", "cobol")
    with platform.mcp() as client:
        client.tools()
    platform.a2a().send("Hello.")
    platform.clock.advance(minutes=1)
    platform.request("GET", "/apps/echo/users/nobody/sessions/no-such")
    platform.request("POST", "/invoke", content=b"\xff\"'")


def test_a_saved_test_passes_against_a_double(platform_: Platform, tmp_path: Path) -> None:
    """It makes the same calls, and what is hostile stays quoted."""
    talk(platform_)
    saved = platform_.save_test(tmp_path / "test_saved.py", repeat=False)

    text = saved.read_text("utf-8")
    assert text.isascii()
    assert [
        *("ping", "list_apps", "create_session", "run", "run_sse", "get_session"),
        *("list_sessions", "list_artifacts", "delete_session", "invoke", "run_code", "run_code"),
        *("run_code", "mcp", "a2a", "a2a", "clock", "request", "request"),
    ] == re.findall(r"platform\.([a-z]\w+)[.(]", text)
    assert "1 passed" in outcome(saved)


def test_a_saved_test_is_clean_for_ruff(platform_: Platform, tmp_path: Path) -> None:
    """Whoever saves it has nothing to tidy up."""
    pytest.importorskip("ruff")
    talk(platform_)
    saved = platform_.save_test(tmp_path / "test_saved.py", repeat=False)

    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select"]
    command = [*ruff, "E4,E7,E9,F,I,B", str(saved)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "All checks passed!" == checked.stdout.strip()


def test_a_saved_test_fails_when_answers_change(platform_: Platform, tmp_path: Path) -> None:
    """It asserts what was answered."""
    platform_.create_session("echo", session_id="s")
    platform_.request("GET", "/apps/echo/users/nobody/sessions/none")
    saved = platform_.save_test(tmp_path / "test_saved.py", repeat=False)
    saved.write_text(saved.read_text("utf-8").replace("404", "200"), "utf-8")

    assert "1 failed" in outcome(saved)


def test_a_journal_is_saved_by_the_command(platform_: Platform, tmp_path: Path) -> None:
    """What other clients asked of a double becomes a test."""
    platform_.invoke("Hello.", session_id="s")
    journal = tmp_path / "journal.json"
    journal.write_bytes(platform_.request("GET", "/_emulator/journal?bodies=true").content)
    output = tmp_path / "test_journal.py"

    ended = CliRunner().invoke(app, ["save-test", str(journal), "-o", str(output), "--no-repeat"])

    assert (0, str(output)) == (ended.exit_code, ended.output.replace("\n", ""))
    assert 'platform.invoke("Hello.", session_id="s")' in output.read_text("utf-8")


def answered(path: str, body: bytes, *, status: int = 200, asked: bytes = b"") -> Exchange:
    request = Request("POST" if asked else "GET", f"http://x{path}", {}, asked)
    return Exchange(request, status, JSON, body)


def test_ids_and_times_are_references() -> None:
    """An id has the same name in every answer."""
    ids = [f"0b0f3c1e-6f0e-4f0c-9d3e-2f6b7a1c9e0{n}" for n in (1, 2)]
    one = answered("/a", json.dumps({"id": ids[0], "at": "2026-01-02T03:04:05Z"}).encode())
    other = answered("/b", json.dumps([ids[1], ids[0]]).encode())

    text = module.module([one, other], "test_x")

    assert 'assert {"id": "<id 1>", "at": "<time>"} == seen.normalised(answer_1.json())' in text
    assert 'assert ["<id 2>", "<id 1>"] == seen.normalised(answer_2.json())' in text


def test_a_list_in_pages_is_compared_with_its_beginning() -> None:
    """The client of the test follows the cursors itself."""
    pages = [
        answered("/mcp", json.dumps({"result": result}).encode(), asked=json.dumps(asked).encode())
        for asked, result in (
            ({"method": "tools/list"}, {"tools": [{"name": "a"}], "nextCursor": "b"}),
            ({"method": "tools/list", "params": {"cursor": "b"}}, {"tools": [{"name": "b"}]}),
        )
    ]
    text = module.module(pages, "test_x")

    assert 'assert ["a"] == [tool.name for tool in client.tools()[:1]]' in text
    assert (1, False) == (text.count("client.tools()"), "not asked" in text)


def test_the_platforms_own_address_is_a_reference() -> None:
    """It is another where the test runs."""
    text = module.module([answered("/a", b'{"url": "http://x/mcp"}')], "test_x")

    assert 'seen.add(platform.url, "<platform>")' in text
    assert '{"url": "<platform>/mcp"} == seen.normalised(answer_1.json())' in text


@pytest.mark.parametrize(
    ("exchange", "why"),
    [
        (Exchange(Request("GET", "http://x/a")), "it had no answer"),
        (Exchange(Request("GET", "http://x/a"), 200, body_cut=True), "it was too large"),
        (answered("/v1/x?Authorization=abc", b""), "a secret in it is not kept"),
        (answered("/?Action=ListTools&Version=1", b"", asked=b"{}"), "only code is run"),
        (answered("/apps/a/users/u/sessions/s/artifacts", b"[]"), "its session was made before"),
        (answered("/mcp", b"{}", asked=b'{"jsonrpc": "2.0"}'), "only tools are listed and called"),
    ],
)
def test_what_cannot_be_asked_again_is_a_comment(exchange: Exchange, why: str) -> None:
    """With the reason, and without what is secret."""
    text = module.module([exchange, answered("/ok", b"1")], "test_x")

    (comment,) = [line for line in text.splitlines() if "# not asked" in line]
    assert (True, False) == (why in comment, "abc" in text)


def test_a_secret_in_an_answer_is_not_asserted() -> None:
    """It is not kept, so nothing can be said of it."""
    text = module.module([answered("/a", b'{"api_key": "correct-horse"}')], "test_x")

    assert ("correct-horse" in text, "_ = answer_1.json()  # not compared" in text) == (False, True)


@pytest.mark.parametrize("name", ["saved.py", "test_saved.txt", "test_.toml"])
def test_a_file_that_pytest_passes_over_is_refused(name: str) -> None:
    """The test would never run."""
    with pytest.raises(SaveError, match=r"pytest looks for test_\*\.py"):
        module.function_name(Path(name))


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    """It may be a test that somebody has improved; nor is an empty test written."""
    path = tmp_path / "test_x.py"
    with pytest.raises(SaveError, match="no call"):
        module.save([], path, repeat=False)
    path.write_text("kept")

    with pytest.raises(SaveError, match="is there already"):
        module.save([answered("/ok", b"1")], path, repeat=False)

    assert ("kept", ["test_x.py"]) == (path.read_text(), [one.name for one in tmp_path.iterdir()])


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"entries": [{}]}', "[" * 5000, '{"entries": [{"method": 1}]}']
)
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str) -> None:
    """With the name of the file."""
    path = tmp_path / "journal.json"
    path.write_text(text)

    with pytest.raises(SaveError, match=f"{path} is no journal"):
        exchange_files.read(path)


@pytest.mark.parametrize(
    "value",
    [HOSTILE, [HOSTILE], {HOSTILE: HOSTILE}, None, True, -1.5, {"a": [{}, []]}, ["x" * 99] * 3],
)
def test_a_literal_is_the_value(value: object) -> None:
    """Whatever it holds, and however long it is."""
    assert value == eval(literal(value))
