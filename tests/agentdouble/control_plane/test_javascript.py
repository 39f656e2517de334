"""JavaScript and TypeScript over the wire (SBX-08)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http, output, result, run, text

pytestmark = pytest.mark.once

MIB = 1024 * 1024
HEAP_OF_200_MB = "var all = []; while (all.length < 25000) all.push(new Array(1000).fill(1))"


def js(double: Emulator, code: str, session: str = "js", **fields: Any) -> dict[str, Any]:
    """Run JavaScript and return ``data`` of section 2.7."""
    data: dict[str, Any] = run(double, code, session, **{"language": "javascript", **fields})[
        "data"
    ]
    return data


def value(data: dict[str, Any]) -> str:
    """Return the plain text of a successful cell's value, its only output."""
    assert "ok" == data["status"], data
    (output,) = data["outputs"]
    text_: str = output["data"]["text/plain"]
    return text_


def failure(data: dict[str, Any]) -> tuple[str, str]:
    """Return name and value of the error of a failed cell."""
    assert "error" == data["status"], data
    error = data["outputs"][-1]
    return error["ename"], error["evalue"]


@pytest.mark.parametrize(
    "name",
    [
        "javascript",
        "node",
    ],
)
def test_names_of_javascript(shared: Emulator, name: str) -> None:
    """All names share one kernel, and the answer repeats the requested name."""
    js(shared, "globalThis.kept = 6", "names")

    inner = run(shared, "console.log('hi'); kept * 7", "names", language=name)

    assert (True, name) == (inner["success"], inner["data"]["kernel_name"])
    assert [
        output("stream", name="stdout", text="hi\n"),
        output(
            "execute_result",
            data={"text/plain": "42"},
            execution_count=inner["data"]["execution_count"],
        ),
    ] == inner["data"]["outputs"]


def test_typescript_is_a_separate_language(shared: Emulator) -> None:
    """Types are stripped but not checked; JavaScript refuses them."""
    code = "enum Colour { Red = 3 }\nconst answer: string = Colour.Red * 14; answer"

    assert "42" == value(js(shared, code, language="typescript"))
    assert "SyntaxError" == failure(js(shared, "let typed: number = 1"))[0]
    assert "SyntaxError" == failure(js(shared, "let x: = 3", language="typescript"))[0]


def test_languages_of_a_session_share_its_files(shared: Emulator) -> None:
    """Each has a separate kernel in the same workspace."""
    text(shared, "open('from_python', 'w').write('snake')", "files")
    js(shared, "Deno.writeTextFileSync('from_javascript', 'deno')", "files")

    assert '"snake"' == value(js(shared, "Deno.readTextFileSync('from_python')", "files"))
    assert "deno" == text(shared, "print(open('from_javascript').read(), end='')", "files")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("let b = 2 +* 3", ("SyntaxError", "Unexpected token '*'")),
        ("nothing.here", ("ReferenceError", "nothing is not defined")),
        ("(function f() { f() })()", ("RangeError", "Maximum call stack size exceeded")),
    ],
)
def test_failing_code_reports_the_engine_s_error(
    shared: Emulator, code: str, error: tuple[str, str]
) -> None:
    """The session survives."""
    assert error == failure(js(shared, code))
    assert "2" == value(js(shared, "1 + 1"))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import 'https://example.com/x.js'", '"https://example.com/x.js" is not available'),
        ("await fetch('http://127.0.0.1:8000')", "Requires net access"),
        ("Deno.readTextFileSync('/etc/passwd')", "Requires read access"),
        ("new Deno.Command('id').outputSync()", "Requires run access"),
    ],
)
def test_inaccessible_resources_are_refused_by_name(
    shared: Emulator, code: str, reason: str
) -> None:
    """External modules, the network, the host's files and its commands."""
    _, message = failure(js(shared, code))

    assert message.startswith(reason)


def test_built_in_modules_can_be_imported(shared: Emulator) -> None:
    """Modules of node, and top-level await."""
    code = """
    import { createHash } from "node:crypto";
    const { setTimeout: wait } = await import("node:timers/promises");
    await wait(1);
    createHash("sha256").update("").digest("hex").slice(0, 8)
    """

    assert '"e3b0c442"' == value(js(shared, code))


def test_many_lines_arrive_complete(shared: Emulator) -> None:
    """Twenty thousand lines, none lost or out of order."""
    data = js(shared, "for (let i = 0; i < 20000; i++) console.log(`line ${i}`)")

    expected = "".join(f"line {i}\n" for i in range(20_000))
    assert [output("stream", name="stdout", text=expected)] == data["outputs"]


@pytest.mark.slow
def test_endless_loop_is_interrupted_after_its_timeout(shared: Emulator) -> None:
    """The instance keeps its variables."""
    first = result(shared, "globalThis.kept = 1", "loop", language="javascript")

    stopped = run(shared, "for (;;);", "loop", language="javascript", timeout_s=1)
    after = result(shared, "kept", "loop", language="javascript")

    assert ("timeout", False) == (stopped["data"]["status"], stopped["success"])
    assert stopped["message"].endswith("was interrupted; the context is kept.")
    assert first["SessionId"] == after["SessionId"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "ename"),
    [
        (HEAP_OF_200_MB, "OutOfMemory"),
    ],
)
def test_engine_exit_loses_the_context(code: str, ename: str) -> None:
    """The answer says how it ended, and the next call gets a new instance."""
    with Emulator(javascript_memory_limit=64 * MIB) as double:
        first = result(double, "globalThis.lost = 1", language="javascript")

        assert ename == failure(js(double, code, "s1", timeout_s=30))[0]
        after = result(double, "typeof lost", language="javascript")

    assert first["SessionId"] != after["SessionId"]
    assert '\\"undefined\\"' in after["Result"]


def engine_of(double: Emulator, session: str) -> psutil.Process:
    """Return the engine of a session that has only run JavaScript."""
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    (pid,) = next(s["pids"] for s in sessions if s["UserSessionId"] == session)
    (engine,) = psutil.Process(pid).children()
    return engine


def opened(descriptor: Path) -> str | None:
    """Return the target of a process's file descriptor, or None if it has been closed."""
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return None


def listening_port(pid: int) -> int:
    """Return the TCP port that a process listens on in its network namespace."""
    sockets = {opened(descriptor) for descriptor in Path(f"/proc/{pid}/fd").iterdir()}
    table = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    for _, address, _, state, *_, inode in (line.split()[:10] for line in table):
        if state == "0A" and f"socket:[{inode}]" in sockets:
            return int(address.partition(":")[2], 16)
    raise AssertionError("it listens nowhere")


ASK_INSPECTOR = """
import urllib.request
try:  # something else on the host may listen on the same port
    print(b"Deno" in urllib.request.urlopen("http://127.0.0.1:{}/json/version", timeout=9).read())
except OSError:
    print(False)
"""


@pytest.mark.needs("network")
@pytest.mark.slow
@pytest.mark.parametrize("setting", ["auto", "none"])
def test_other_sessions_cannot_reach_the_inspector(setting: str) -> None:
    """It listens on the session's loopback device; on the host's, anybody could control it."""
    with Emulator(isolation=setting) as double:
        js(double, "1", "watched")
        engine = engine_of(double, "watched")
        reached = text(double, ASK_INSPECTOR.format(listening_port(engine.pid)), "curious")

    assert f"{setting == 'none'}\n" == reached
