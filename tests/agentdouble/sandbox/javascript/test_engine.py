from __future__ import annotations

import psutil
import pytest

from tests.agentdouble.sandbox.javascript.session import MIB, Session, failure, streams, text_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("Deno.readTextFileSync('/etc/passwd')", 'Requires read access to "/etc/passwd"'),
        ("Deno.writeTextFileSync('/etc/x', '')", 'Requires write access to "/etc/x"'),
        (
            "Deno.symlinkSync('/etc/passwd', 'link')",
            "Deno.symlinkSync() is not available in JavaScript cells",
        ),
        ("new Deno.Command('ls').outputSync()", 'Requires run access to "ls"'),
        ("process.kill(process.ppid, 0)", "Requires run access"),
        ("Deno.dlopen('libc.so.6', {})", "Requires ffi access"),
        ("Deno.networkInterfaces()", "Requires sys access"),
        ("await fetch('http://127.0.0.1:9999')", "Requires net access"),
        ("Deno.listen({port: 0})", "Requires net access"),
        (
            "await import('https://example.com/x.js')",
            '"https://example.com/x.js" is not available: a JavaScript',
        ),
        (
            "await import('npm:chalk')",
            "npm packages are not available: a JavaScript cell can import",
        ),
    ],
)
def test_code_is_confined(shared: Session, code: str, reason: str) -> None:
    """Deno denies other directories, processes and the network."""
    assert (failure(shared(code)).evalue or "").startswith(reason)


def test_session_files_are_accessible(shared: Session) -> None:
    """Code can write to the working directory and TMPDIR; other variables are undefined."""
    code = """
    Deno.writeTextFileSync("here.txt", "h");
    const scratch = Deno.makeTempFileSync();
    [Deno.readTextFileSync("here.txt"), scratch.startsWith(process.env.TMPDIR), process.env.API_KEY]
    """

    assert '[ "h", true, undefined ]' == text_of(shared(code))


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
    """It ends loops, awaits and busy coroutines, and nothing runs on."""
    shared("var kept = 'kept'")

    result = shared(code, timeout_s=0.2)

    assert ("timeout", False) == (result.status, result.context_lost)
    assert result.error is not None
    assert "Interrupted" == result.error.ename
    after = shared("await new Promise(done => setTimeout(done, 5)); kept")
    assert ('"kept"', []) == (text_of(after), streams(after))


def test_an_interrupt_works_while_the_engine_starts(session: Session) -> None:
    """The next cell gets an engine even so."""
    result = session("var begun = true; while (true);", timeout_s=0)

    assert ("timeout", False) == (result.status, result.context_lost)
    # on a busy machine the engine may be there before the interrupt, which then ends the loop
    assert text_of(session("typeof begun")) in ('"undefined"', '"boolean"')


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
    """The cell keeps its output and says how the engine ended."""
    session("var lost = 1")

    result = session(code)

    assert (
        f"{message}; its variables are lost, and the next cell gets a new one"
        == failure(result).evalue
    )
    assert [("stdout", "last\n")] == streams(result)
    assert '"undefined"' == text_of(session("typeof lost"))


def test_an_engine_that_dies_between_cells_is_replaced(session: Session) -> None:
    """The next cell does not fail."""
    engine = session.engine()
    engine.kill()
    psutil.wait_procs([engine], timeout=30)

    assert "1" == text_of(session("1"))


HEAP_OF_200_MB = (
    "var all = []; while (all.length < 25000) all.push(new Array(1000).fill(1)); 'held'"
)


@pytest.mark.slow
def test_running_out_of_memory_is_reported() -> None:
    """Exceeding ``javascript_memory_limit`` ends only the engine."""
    session = Session(memory=64 * MIB)
    try:
        result = session(HEAP_OF_200_MB)

        error = failure(result)
        assert "OutOfMemory" == error.ename
        assert [] == streams(result)
        assert "1" == text_of(session("1"))
    finally:
        session.close()


def test_the_engine_ends_with_its_kernel(session: Session) -> None:
    """It does not matter how the kernel ends."""
    engine = session.engine()

    psutil.Process(session.kernel.pid).kill()

    assert ([engine], []) == psutil.wait_procs([engine], timeout=30)


def test_the_engine_ends_with_the_fork_server(session: Session) -> None:
    engine = session.engine()
    server = psutil.Process(session.kernel.pid).parent()
    assert server is not None

    server.kill()

    assert ([engine], []) == psutil.wait_procs([engine], timeout=30)
