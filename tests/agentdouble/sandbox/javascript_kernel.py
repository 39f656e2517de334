"""Tests of the JavaScript kernel, run by naming this file; it is not offered yet.

When the names of the language are given out, these tests join the others.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from agentdouble.sandbox.javascript import deno, imports
from agentdouble.sandbox.kernels import Kernels
from agentdouble.sandbox.languages import JAVASCRIPT
from agentdouble.sandbox.result import ExecutionResult, Output
from agentdouble.settings import Settings

if sys.platform != "linux":
    pytest.skip("kernels are forked on Linux only", allow_module_level=True)

MIB = 1024 * 1024


class Session:
    """One JavaScript kernel on a loop of its own, for tests that are not async."""

    def __init__(self, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self.kernels = Kernels(Settings.load(pool_size=0))
        self.workspace = self.kernels.workspace()
        language = replace(JAVASCRIPT, fork_config={"JavaScriptKernel": options})
        start = self.kernels.start(language, self.workspace)
        self.kernel = self._loop.run_until_complete(start)

    def __call__(self, code: str, timeout_s: float = 10) -> ExecutionResult:
        """Run code."""
        run = self.kernel.execute(code, timeout_s=timeout_s, output_limit=16 * MIB)
        return self._loop.run_until_complete(run)

    def engine(self) -> psutil.Process:
        """Return the process of the engine."""
        self("0")  # it is there when it has answered
        (engine,) = psutil.Process(self.kernel.pid).children()
        return engine

    def close(self) -> None:
        """End everything."""
        self._loop.run_until_complete(self.kernels.close())
        self._loop.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Session]:
    """A session that is never reset: its tests take names of their own."""
    session = Session()
    yield session
    session.close()


@pytest.fixture
def session() -> Iterator[Session]:
    """A session that a test may spoil."""
    session = Session()
    yield session
    session.close()


def shown(result: ExecutionResult) -> str:
    """Return the plain text of the result of a cell, which must have succeeded."""
    assert "ok" == result.status, result
    (text,) = (o.data["text/plain"] for o in result.outputs if o.data is not None)
    return str(text)


def streams(result: ExecutionResult) -> list[tuple[str | None, str | None]]:
    return [(o.name, o.text) for o in result.outputs if o.output_type == "stream"]


def failure(result: ExecutionResult) -> Output:
    assert "error" == result.status, result
    assert result.error is not None
    return result.error


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ("null", "null"),
        ("10n ** 20n", "100000000000000000000n"),
        ("-0", "-0"),
        ("'a' + `b`", '"ab"'),
        ("[1, {b: new Map([['c', 2]])}]", '[ 1, { b: Map(1) { "c" => 2 } } ]'),
        ("{a: 1, b: [2]}", "{ a: 1, b: [ 2 ] }"),
        ("Symbol('s')", "Symbol(s)"),
        ("new (class Point { x = 1 })", "Point { x: 1 }"),
        ("await new Promise(done => setTimeout(() => done('late'), 1))", '"late"'),
        ("'日本' + '😀' // at the end", '"日本😀"'),
    ],
)
def test_the_last_value_is_the_result(shared: Session, code: str, text: str) -> None:
    """A cell's last value is shown as Deno.inspect shows it."""
    assert text == shown(shared(code))


@pytest.mark.parametrize("code", ["undefined", "let nothing = 1", "{ let block = 1 }", ""])
def test_no_value_is_no_result(shared: Session, code: str) -> None:
    """A cell that has no value, or undefined, puts nothing out."""
    result = shared(code)

    assert ("ok", ()) == (result.status, result.outputs)


def test_console_goes_to_stdout_and_stderr_in_order(shared: Session) -> None:
    """log, info and debug are stdout, warn and error are stderr, and their order is kept."""
    code = (
        "console.log('%d', 1); console.info(2); console.warn(3); console.error(4); console.debug(5)"
    )

    assert [("stdout", "1\n2\n"), ("stderr", "3\n4\n"), ("stdout", "5\n")] == streams(shared(code))


def test_raw_writes_are_captured(shared: Session) -> None:
    """What goes to the standard streams without the console is output too."""
    code = """
    const bytes = new TextEncoder().encode("é");
    for (const byte of bytes) Deno.stdout.writeSync(new Uint8Array([byte]));
    process.stdout.write("node\\n");
    """

    assert [("stdout", "énode\n")] == streams(shared(code))


def test_a_flood_loses_nothing(shared: Session) -> None:
    """Twenty thousand lines all arrive, in order."""
    code = "for (let i = 0; i < 20000; i++) console.log('line ' + i)"

    ((name, text),) = streams(shared(code))

    assert "stdout" == name
    assert [f"line {i}" for i in range(20000)] == (text or "").splitlines()


def test_display_shows_media_between_other_outputs(shared: Session) -> None:
    """Objects with Jupyter's symbol, Deno.jupyter's helpers and raw bundles are shown in place."""
    code = """
    display({"text/html": "<b>raw</b>"}, {raw: true});
    console.log("between");
    display(Deno.jupyter.html`<i>${1}</i>`);
    await display({[Symbol.for("Jupyter.display")]: async () => ({"text/markdown": "# h"})});
    Deno.jupyter.svg`<svg/>`
    """
    result = shared(code)

    assert [
        ("display_data", {"text/html": "<b>raw</b>"}),
        ("stream", None),
        ("display_data", {"text/html": "<i>1</i>"}),
        ("display_data", {"text/markdown": "# h"}),
        ("execute_result", {"image/svg+xml": "<svg/>"}),
    ] == [(o.output_type, o.data) for o in result.outputs]


def test_what_is_declared_stays_and_can_be_declared_again(shared: Session) -> None:
    """Variables, functions and classes live on; let and const can be declared anew."""
    shared("let a = 1; const b = 2; function f() { return a } class A { v = 3 }")
    shared("let a = 10; const b = 20;")

    assert "[ 10, 20, 10, A { v: 3 } ]" == shown(shared("[a, b, f(), new A()]"))


def test_a_thrown_error_has_its_own_name_and_stack(shared: Session) -> None:
    """The stack names the cells and the places where the error came from."""
    boom = shared("function boom() { throw new RangeError('no') }").execution_count
    result = shared("const before = 1;\n  boom()")

    assert Output(
        "error",
        ename="RangeError",
        evalue="no",
        traceback=(
            "RangeError: no",
            f"    at boom (cell-{boom}.js:1:25)",
            f"    at cell-{result.execution_count}.js:2:3",
        ),
    ) == failure(result)


def test_a_syntax_error_shows_the_line(shared: Session) -> None:
    """A cell that cannot be parsed is an error that points at the place."""
    result = shared("const fine = 1;\nlet b = 2 +* 3;")

    assert Output(
        "error",
        ename="SyntaxError",
        evalue="Unexpected token '*'",
        traceback=(
            "SyntaxError: Unexpected token '*'",
            "let b = 2 +* 3;",
            "           ^",
            f"    at cell-{result.execution_count}.js:2:12",
        ),
    ) == failure(result)


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("throw 42", "Uncaught", "42"),
        ("throw {a: 1}", "Uncaught", "{ a: 1 }"),
        ("await Promise.reject(new TypeError('t'))", "TypeError", "t"),
        ("class Mine extends Error {}; throw new Mine('m')", "Mine", "m"),
        ("(() => { throw new Error('e') })()", "Error", "e"),
        ("foo(", "SyntaxError", "Unexpected end of input"),
        ("eval('import x from \"y\"')", "SyntaxError", imports.REFUSAL),
        ("prompt('?')", "Error", "prompt() is not available: nobody is there to answer"),
    ],
)
def test_what_is_thrown_is_an_error(shared: Session, code: str, name: str, value: str) -> None:
    """Whatever a cell throws, its error says what it is."""
    error = failure(shared(code))

    assert (name, value) == (error.ename, error.evalue)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("Promise.reject(new Error('x')); 1", "Uncaught (in promise) Error: x\n"),
        ("queueMicrotask(() => { throw new Error('y') }); 1", "Uncaught Error: y\n"),
    ],
)
def test_unhandled_errors_are_reported_and_harmless(shared: Session, code: str, text: str) -> None:
    """An error that nobody catches is told on stderr, and the session goes on."""
    result = shared(code)

    (said,) = streams(result)
    assert ("1", "stderr") == (shown(result), said[0])
    assert (said[1] or "").startswith(text)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import path from 'node:path'; path.join('a', 'b')", '"a/b"'),
        ("import {\n  join as j, // one\n  sep,\n} from 'node:path'\nj('a', sep)", '"a/"'),
        ("import def, * as all from 'node:path'; def === all.default", "true"),
        ("import 'node:path'; 1", "1"),
        ("const text = `\nimport x from 'y'`; text.length", "18"),
        ("(await import('node:path')).basename('/a/b')", '"b"'),
        ("Deno.writeTextFileSync('m.js', 'export const v = 9');\nimport {v} from './m.js'; v", "9"),
        ("import {v} from './m.js'; v", "9"),
        (
            """Deno.writeTextFileSync('d.json', '[7]');
            import data from './d.json' with {type: 'json'}
            data[0]""",
            "7",
        ),
    ],
)
def test_imports_work_in_a_cell(shared: Session, code: str, text: str) -> None:
    """Static imports, relative ones too, and dynamic imports; again as often as one likes."""
    assert [text, text] == [shown(shared(code)), shown(shared(code))]


def test_a_missing_export_is_an_error(shared: Session) -> None:
    """A name that the module does not export is not silently undefined."""
    error = failure(shared("import {nope} from 'node:path'"))

    assert (
        "The requested module 'node:path' does not provide an export named 'nope'" == error.evalue
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("Deno.readTextFileSync('/etc/passwd')", 'Requires read access to "/etc/passwd"'),
        ("Deno.writeTextFileSync('/etc/x', '')", 'Requires write access to "/etc/x"'),
        ("Deno.symlinkSync('/etc/passwd', 'link')", "Deno.symlinkSync() requires unscoped"),
        ("new Deno.Command('ls').outputSync()", 'Requires run access to "ls"'),
        ("process.kill(process.ppid, 0)", "Requires run access"),
        ("Deno.dlopen('libc.so.6', {})", "Requires ffi access"),
        ("Deno.hostname()", "Requires sys access"),
        ("await fetch('http://127.0.0.1:9999')", "Requires net access"),
        ("Deno.listen({port: 0})", "Requires net access"),
        ("await import('https://example.com/x.js')", "A remote specifier was requested"),
        ("await import('npm:chalk')", "npm specifiers were requested"),
    ],
)
def test_code_is_confined(shared: Session, code: str, reason: str) -> None:
    """Deno refuses what lies outside the session's directories, processes and the network."""
    assert (failure(shared(code)).evalue or "").startswith(reason)


def test_files_of_the_session_are_there(shared: Session) -> None:
    """The working directory and TMPDIR can be written; other variables are undefined."""
    code = """
    Deno.writeTextFileSync("here.txt", "h");
    const scratch = Deno.makeTempFileSync();
    [Deno.readTextFileSync("here.txt"), scratch.startsWith(process.env.TMPDIR), process.env.API_KEY]
    """

    assert '[ "h", true, undefined ]' == shown(shared(code))


def test_the_network_is_there_where_it_is_configured() -> None:
    """With the option ``network`` code may listen and connect."""
    session = Session(network=True)
    try:
        code = """
        const server = Deno.serve({port: 0, onListen() {}}, () => new Response("hello"));
        const answer = await (await fetch(`http://127.0.0.1:${server.addr.port}`)).text();
        await server.shutdown();
        answer
        """
        assert '"hello"' == shown(session(code))
    finally:
        session.close()


@pytest.mark.parametrize(
    "code",
    [
        "while (true);",
        "try { while (true); } finally { while (true); }",
        "while (true) await null",
        "while (true) await new Promise(done => setTimeout(done, 1))",
        "globalThis.never = new Promise(() => {}); await never",
        "for (;;) console.log('x')",
        "setTimeout(() => { while (true); }); await new Promise(done => setTimeout(done, 60000))",
        "const held = (() => { while (true); })()",
    ],
)
def test_an_interrupt_stops_code_and_keeps_state(shared: Session, code: str) -> None:
    """Loops, awaits and busy coroutines end; variables stay, and nothing goes on behind."""
    shared("var kept = 'kept'")

    result = shared(code, timeout_s=0.2)

    assert ("timeout", False) == (result.status, result.context_lost)
    assert result.error is not None
    assert "Interrupted" == result.error.ename
    after = shared("await new Promise(done => setTimeout(done, 5)); kept")
    assert ('"kept"', []) == (shown(after), streams(after))


_GARBAGE = """
for (let i = 0; i < 20; i++) {
    queueMicrotask(() => { globalThis.last = Array.from({ length: 20000 }, (_, n) => ({ n })) });
}
"""


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (f"{_GARBAGE} 1 + 1", "2"),
        (f"await new Promise(done => setTimeout(done, 1)); {_GARBAGE} 1", "1"),
        (f"{_GARBAGE} throw new TypeError('mine')", "TypeError"),
    ],
    ids=["result", "timer", "error"],
)
def test_a_promise_that_settles_is_never_lost(shared: Session, code: str, outcome: str) -> None:
    """The engine collects garbage between the end of a cell and its answer, and still answers."""
    results = [shared(code) for _ in range(40)]

    assert {outcome} == {r.error.ename if r.error else shown(r) for r in results}


def test_a_promise_that_nothing_can_settle_is_an_error(shared: Session) -> None:
    """Where the engine finds that an awaited promise is garbage, the cell does not hang."""
    code = "setTimeout(() => { for (let i = 0; i < 200; i++) new Array(1e5).fill(i) }, 1); await new Promise(() => {})"

    result = shared(code, timeout_s=5)

    assert result.error is not None
    assert result.error.ename in ("NeverSettled", "Interrupted")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("console.log('last'); Deno.exit(3)", "the JavaScript engine exited with code 3"),
        ("console.log('last'); process.exit(4)", "the JavaScript engine exited with code 4"),
        (
            "console.log('last'); process.kill(process.pid, 'SIGKILL')",
            "the JavaScript engine was killed by signal 9",
        ),
    ],
)
def test_an_engine_that_ends_is_reported_and_replaced(
    session: Session, code: str, message: str
) -> None:
    """The cell says how the engine ended, keeps its output, and the next one has a new engine."""
    session("var lost = 1")

    result = session(code)

    assert (
        f"{message}; its variables are lost, and the next cell gets a new one"
        == failure(result).evalue
    )
    assert [("stdout", "last\n")] == streams(result)
    assert '"undefined"' == shown(session("typeof lost"))


def test_an_engine_that_dies_between_cells_is_replaced(session: Session) -> None:
    """An engine that is killed while nothing runs does not fail the next cell."""
    engine = session.engine()
    engine.kill()
    psutil.wait_procs([engine], timeout=5)

    assert "1" == shown(session("1"))


def test_running_out_of_memory_is_reported() -> None:
    """A heap that grows beyond the option ``memory`` ends the engine, and only that."""
    session = Session(memory=64 * MIB)
    try:
        result = session("const all = []; while (true) all.push(new Array(1000).fill(all.length))")

        error = failure(result)
        assert "OutOfMemory" == error.ename
        assert [] == streams(result)
        assert "1" == shown(session("1"))
    finally:
        session.close()


def test_typescript_is_accepted_where_it_is_the_language() -> None:
    """Types are taken off, enums and the like compiled; a mistake is an error with its place."""
    session = Session(typescript=True)
    try:
        code = """
        import type { Stats } from "node:fs";
        interface Point { x: number }
        enum Colour { Red = 3 }
        const origin = <T extends Point>(p: T): T => p;
        origin({ x: Colour.Red }) as Point
        """
        assert "{ x: 3 }" == shown(session(code))
        assert "SyntaxError" == failure(session("let x: = 3")).ename
    finally:
        session.close()


def test_types_are_refused_in_javascript(shared: Session) -> None:
    """JavaScript stays JavaScript: a type is a syntax error."""
    assert "SyntaxError" == failure(shared("let typed: number = 1")).ename


def test_nothing_is_left_when_a_session_ends(session: Session) -> None:
    """The engine ends with its kernel, however that ends."""
    engine = session.engine()

    psutil.Process(session.kernel.pid).kill()

    assert ([engine], []) == psutil.wait_procs([engine], timeout=5)


def test_nothing_is_left_when_the_fork_server_dies(session: Session) -> None:
    """The engine ends when the fork server is killed."""
    engine = session.engine()
    server = psutil.Process(session.kernel.pid).parent()
    assert server is not None

    server.kill()

    assert ([engine], []) == psutil.wait_procs([engine], timeout=5)


DOUBLE = """
from tests.agentdouble.sandbox.javascript_kernel import Session
print(Session().engine().pid, flush=True)
input()
"""


def test_nothing_is_left_when_the_double_is_killed() -> None:
    """The engine ends when the process that runs the double is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", DOUBLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as double:
        assert double.stdout is not None
        engine = psutil.Process(int(double.stdout.readline()))
        double.kill()

    assert ([engine], []) == psutil.wait_procs([engine], timeout=5)


def test_a_missing_deno_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without deno the error names the pip command."""
    monkeypatch.setitem(sys.modules, "deno", None)

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'agentdouble\[emulator\]'"):
        deno.find()


def test_a_kernel_without_deno_answers_every_cell_so() -> None:
    """A kernel whose engine cannot start lives and says why."""
    session = Session(deno="/nowhere/deno")
    try:
        error = failure(session("1"))

        assert "EngineNotStarted" == error.ename
        assert "/nowhere/deno" in (error.evalue or "")
    finally:
        session.close()


@pytest.mark.parametrize(
    ("source", "dynamic"),
    [
        ('import "x"', 'void await import("x");'),
        ('import * as n from "x";', 'const n = await import("x");'),
        (
            'import d, {a as b} from "x"',
            'const {default: d, a: b} = __cell.named(await import("x"), "x", ["default", "a"]);',
        ),
        (
            'import {a,\n b}\nfrom "x"',
            'const {a: a, b: b} = __cell.named(await import("x"), "x", ["a", "b"]);\n\n',
        ),
        (
            'import * as j from "./j.json" with {type: "json"}',
            'const j = await import("./j.json", {with: {type: "json"}});',
        ),
        ('import "x" as y', None),
        ("import.meta", None),
        ("import a, b from 'x'", None),
    ],
)
def test_a_static_import_becomes_a_dynamic_one(source: str, dynamic: str | None) -> None:
    """Every form of the statement, and nothing that only looks like it."""
    assert dynamic == imports.rewrite(source, 0)
