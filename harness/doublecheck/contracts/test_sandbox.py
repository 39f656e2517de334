"""Checks of session instances: creation, reuse and destruction (SBX-01 to SBX-03)."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from typing import TYPE_CHECKING

import pytest

from agentdouble.core import ledger
from doublecheck.client._sync.controls import PlatformClock
from doublecheck.contracts import inputs, sandboxes
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, at_once, for_each
from doublecheck.contracts.instance_model import InstancesModel
from doublecheck.contracts.models import model
from doublecheck.contracts.sandboxes import (
    COMMAND,
    JAVASCRIPT,
    PYTHON,
    TTL_S,
    Sandbox,
    failure,
    printed,
    succeeded,
    texts_of_values,
)
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError
from doublecheck.values.failures import plain

if TYPE_CHECKING:
    from doublecheck.values.executions import BashResult, CodeResult

FIRSTS = {
    PYTHON: "x = globals().get('x', 0) + 1; print(x)",
    JAVASCRIPT: "globalThis.x = (globalThis.x ?? 0) + 1; console.log(x);",
    COMMAND: "echo 1",
}
FILE = "file"
COUNTS = {
    **FIRSTS,
    COMMAND: "echo x >> /tmp/doublecheck-count; wc -l < /tmp/doublecheck-count",
}
BEFORE_THE_END = dt.timedelta(minutes=29, seconds=59)
PAST_IT = dt.timedelta(seconds=2)


@clause("SBX-01", writes=True)
def test_the_first_call_creates_the_instance(sandbox: Sandbox) -> None:
    """A first call with code or a command creates a new instance, and runs once."""
    ids = set()

    for language, code in FIRSTS.items():
        ran = _run(sandbox.with_session(f"Another_one-{language}"), code, language)

        assert "1\n" == ran.stdout
        assert re.fullmatch(r"s-\S+", ran.session_id), ran.session_id
        ids.add(ran.session_id)
    assert len(FIRSTS) == len(ids), ids


@clause("SBX-02", writes=True)
def test_the_same_session_is_reused(sandbox: Sandbox) -> None:
    """Later calls find every kind of state, also after errors, JavaScript and commands."""
    first = sandbox.run("pass")
    paths = sandboxes.leave(sandbox, "one")

    failure(sandbox.run("1 / 0"))
    failure(sandbox.run("throw new Error('on purpose')", JAVASCRIPT))
    sandbox.run("print('x' * 300_000)")
    ran = sandbox.exec_bash("true")

    for _ in range(2):
        state = sandboxes.read_state(sandbox, paths)
        assert sandboxes.with_mark("one", state) == state
    for number in ("1\n", "2\n", "3\n"):
        counts = [sandbox.run(FIRSTS[name], name) for name in (PYTHON, JAVASCRIPT)]
        assert [number] * 2 == [printed(result) for result in counts]
        assert {first.session_id} == {ran.session_id, *(result.session_id for result in counts)}


@for_clauses(("SBX-01", "SBX-02"), writes=True)
def test_first_calls_at_the_same_time_share_an_instance(sandbox: Sandbox, id_: str) -> None:
    """Several first calls of a session create one instance, in which each of them runs."""
    results = at_once([functools.partial(sandbox.run, "pass")] * 3, busy=(RefusedError,))

    assert 1 == len({result.session_id for result in results})
    assert {1, 2, 3} == {succeeded(result).execution_count for result in results}


@clause("SBX-03", writes=True)
def test_the_instance_is_destroyed_after_thirty_minutes(
    sandbox: Sandbox, clock: PlatformClock
) -> None:
    """An instance keeps its state until thirty minutes have passed; an unused one then ends.

    One second later the session has a new instance without state, or is refused (U-TTL-EXTENDS,
    U-TTL-AFTER). How the instance was created does not matter.
    """
    used, unused = sandbox, sandbox.with_session("unused")
    boxes = {
        kind: (sandbox.with_session(f"{kind}-used"), sandbox.with_session(f"{kind}-unused"))
        for kind in (JAVASCRIPT, COMMAND, FILE)
    }
    places = [sandboxes.leave(box, "one", ttl_s=None) for box in (used, unused)]
    id_ = succeeded(unused.run("pass", ttl_s=None)).session_id
    firsts = {kind: [_count(box, kind) for box in pair] for kind, pair in boxes.items()}
    assert {kind: [1, 1] for kind in boxes} == firsts

    clock.advance(BEFORE_THE_END)
    state = sandboxes.read_state(used, places[0], ttl_s=None)
    assert sandboxes.with_mark("one", state) == state
    assert dict.fromkeys(boxes, 2) == {kind: _count(pair[0], kind) for kind, pair in boxes.items()}
    clock.advance(PAST_IT)

    after = {kind: _count(pair[1], kind) for kind, pair in boxes.items()}
    assert {} == {kind: count for kind, count in after.items() if count not in (None, 1)}
    if _count(unused, PYTHON) is not None:
        assert id_ != succeeded(unused.run("pass", ttl_s=None)).session_id
        state = sandboxes.read_state(unused, places[1], ttl_s=None)
        assert sandboxes.with_mark(None, state) == state


@clause("SBX-03", writes=True)
def test_nothing_survives_the_end(
    sandbox: Sandbox, clock: PlatformClock, examples: Examples
) -> None:
    """Whatever was set or written before, an instance that has ended leaves nothing."""
    if ledger.choose("U-TTL-AFTER") != ledger.unknowns()["U-TTL-AFTER"].default.name:
        not_observable("an expired session is refused (U-TTL-AFTER)")
    rules = ("assign", "read", "write", "load", "expire")
    boxes = [sandbox, sandbox.with_session("other")]
    machine = model(InstancesModel, rules, boxes=boxes, ttl_s=None, clock=clock)
    examples.run_model(machine, cost=6)


def _count(box: Sandbox, kind: str) -> int | None:
    """Return how often this was called in an instance, or None if the session is refused."""
    path = "/tmp/doublecheck-count"  # noqa: S108 (of the sandbox)
    try:
        if kind != FILE:
            return int(_run(box, COUNTS[kind], kind, ttl_s=None).stdout)
        count = _size(box, path)
        box.upload(path, b"x" * (count + 1), ttl_s=None)
        return _size(box, path)
    except RefusedError:
        return None


def _size(box: Sandbox, path: str) -> int:
    """Return the size of a file, 0 if it does not exist."""
    try:
        return len(box.download(path, ttl_s=None))
    except RefusedError:
        return 0


def _run(
    sandbox: Sandbox, code: str, language: str, *, ttl_s: int | None = TTL_S
) -> CodeResult | BashResult:
    if language == COMMAND:
        return sandbox.exec_bash(code, ttl_s=ttl_s)
    return succeeded(sandbox.run(code, language, ttl_s=ttl_s))


COLOURED = "\x1b[1;31m red \x1b[0m over\rwritten\b"
TEXTS = inputs.texts(carriage_returns=True).map(lambda text: f"{text}{COLOURED}")
MESSAGES = inputs.texts(empty=False, long=400)
MESSAGE = "on purpose: ü 日本語 🦉, longer than thirty-two characters\n  in two lines"
RAISING = f"def broken_here():\n    raise {{}}({MESSAGE!r})\n\nbroken_here()"
ERRORS = {
    "a runtime error": (RAISING.format("ValueError"), PYTHON, "ValueError", MESSAGE),
    "a failed assertion": (f"assert False, {MESSAGE!r}", PYTHON, "AssertionError", MESSAGE),
    "a custom error": (
        f"class OwnError(Exception): pass\n{RAISING.format('OwnError')}",
        *(PYTHON, "OwnError", MESSAGE),
    ),
    "a division": ("print('before')\n1 / 0", PYTHON, "ZeroDivisionError", "division by zero"),
    "an undefined name": ("nobody", PYTHON, "NameError", "name 'nobody' is not defined"),
    "broken syntax": ("print('before')\ndef f(:", PYTHON, "SyntaxError", None),
    "broken indentation": ("if True:\nprint('before')", PYTHON, "IndentationError", None),
    "a JavaScript error": (
        f"function brokenHere() {{ throw new RangeError({json.dumps(MESSAGE)}); }}\nbrokenHere();",
        *(JAVASCRIPT, "RangeError", MESSAGE),
    ),
    "an error without a message": ("raise ValueError", PYTHON, "ValueError", ""),
    "a JavaScript syntax error": ("let broken = {", JAVASCRIPT, "SyntaxError", None),
}


@clause("SBX-05", writes=True)
@for_each(text=TEXTS)
def test_standard_output_is_a_stream(sandbox: Sandbox, text: str) -> None:
    """In every call, written text arrives complete, in a stream named stdout only."""
    code = f"import sys\nwritten = sys.stdout.write({text!r})"

    for _ in range(2):
        ran = sandbox.run(code)
        assert (text, "") == (printed(ran), printed(ran, "stderr"))


@clause("SBX-05", writes=True)
@for_each(cost=2, text=inputs.texts())
def test_the_standard_output_of_javascript_is_a_stream(sandbox: Sandbox, text: str) -> None:
    """JavaScript logs to the same stream."""
    ran = sandbox.run(f"console.log({json.dumps(text)});", JAVASCRIPT)

    assert f"{text}\n" == printed(ran)


LARGE = 900_000  # characters; a sandbox may cut more than a megabyte
OUTPUTS_OF_ALL_KINDS = """
import sys, threading
thread = threading.Thread(target=print, args=("of a thread",))
thread.start()
thread.join()
import subprocess
_ = subprocess.run(["echo", "of a process"])
print("last")
"""


@clause("SBX-05", writes=True)
@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT])
def test_large_outputs_arrive(sandbox: Sandbox, language: str) -> None:
    """Almost a megabyte of output arrives complete."""
    codes = {
        PYTHON: f"print(''.join(f'{{n:09}}\\n' for n in range({LARGE // 10})), end='')",
        JAVASCRIPT: f"for (let n = 0; n < {LARGE // 10}; n += 1000) console.log(Array.from("
        "{length: 1000}, (_, i) => String(n + i).padStart(9, '0')).join('\\n'));",
    }

    text = printed(sandbox.run(codes[language], language))

    assert LARGE == len(text)
    assert [f"{number:09}" for number in range(LARGE // 10)] == text.split()


@clause("SBX-05", writes=True)
def test_threads_and_processes_write_to_the_stream(sandbox: Sandbox) -> None:
    """The output of threads and of child processes arrives, too, perhaps in another order."""
    lines = printed(sandbox.run(OUTPUTS_OF_ALL_KINDS)).splitlines()

    assert ["last", "of a process", "of a thread"] == sorted(lines)


@clause("SBX-05", writes=True)
def test_the_streams_are_apart(sandbox: Sandbox) -> None:
    """Each stream has its own text, in order; values and errors are in neither."""
    code = (
        "import sys\n"
        "for n in range(3):\n"
        "    print('out', n, flush=True)\n"
        "    print('err', n, file=sys.stderr, flush=True)\n"
    )
    out, err = ("".join(f"{name} {n}\n" for n in range(3)) for name in ("out", "err"))
    nothing, value = sandbox.run("pass"), sandbox.run(f"{code}6 * 7")
    failed, after = sandbox.run(f"{code}1 / 0"), sandbox.run("print(end='after')")

    streams = [(printed(result), printed(result, "stderr")) for result in (nothing, value, after)]
    assert [("", ""), (out, err), ("after", "")] == streams
    assert out == printed(failed)
    assert printed(failed, "stderr").startswith(err)


@clause("SBX-06", writes=True)
def test_a_failure_tells_what_happened(sandbox: Sandbox) -> None:
    """Name, value and traceback are present, the status is not ok, and the next code runs."""
    for kind, (code, language, name, value) in ERRORS.items():
        error = failure(sandbox.run(code, language))

        assert (name, error.evalue if value is None else value) == (error.ename, error.evalue), kind
        assert error.evalue or value == "", kind
        where = "broken_here" if "broken_here" in code else ""
        text = plain("\n".join(error.traceback or ()))
        assert name in text, f"the traceback does not name {name}: {text!r}"
        assert where in text, f"the traceback does not show where {name} was raised: {text!r}"
        following = "print('after')" if language == PYTHON else "console.log('after')"
        assert "after\n" == printed(succeeded(sandbox.run(following, language))), kind


@clause("SBX-06", writes=True)
@for_each(message=MESSAGES)
def test_the_value_of_an_error_is_its_message(sandbox: Sandbox, message: str) -> None:
    """The whole message of this error arrives, after the printed text."""
    ran = sandbox.run(f"print('before')\nraise LookupError({message!r})")

    assert ("LookupError", message) == (failure(ran).ename, failure(ran).evalue)
    assert "before\n" == printed(ran)


_PYTHON = """
import json
kept = {"squares": [n * n for n in range(4)], "text": "ü 日本語 🦉"}

def told():
    return json.dumps(kept, ensure_ascii=False)
"""
_JAVASCRIPT = """
const kept = {squares: [0, 1, 2, 3].map((n) => n * n)};
let text = "ü 日本語 🦉";
class Told {
    toString() { return JSON.stringify({...kept, text}); }
}
(async () => { globalThis.awaited = await Promise.resolve(`${text}!`); })();
"""
LANGUAGES = {
    PYTHON: (_PYTHON, "print(told())", "6 * 7"),
    JAVASCRIPT: (_JAVASCRIPT, "console.log(String(new Told()))", "6 * 7"),
}


@clause("SBX-08", writes=True)
def test_python_and_javascript_are_spoken(sandbox: Sandbox) -> None:
    """One session runs multi-line code in each language, with separate state per language."""
    firsts = [succeeded(sandbox.run(codes[0], name)) for name, codes in LANGUAGES.items()]
    printed_first = [succeeded(sandbox.run(codes[1], name)) for name, codes in LANGUAGES.items()]
    valued = [succeeded(sandbox.run(codes[2], name)) for name, codes in LANGUAGES.items()]
    again = [succeeded(sandbox.run(codes[1], name)) for name, codes in LANGUAGES.items()]

    expected = {"squares": [0, 1, 4, 9], "text": "ü 日本語 🦉"}
    assert [expected] * 4 == [json.loads(printed(result)) for result in (*printed_first, *again)]
    assert [["42"], ["42"]] == [texts_of_values(result) for result in valued]
    assert 1 == len({result.session_id for result in (*firsts, *printed_first, *valued)})


@clause("SBX-08", writes=True)
def test_javascript_has_promises(sandbox: Sandbox) -> None:
    """The result of awaited code is available in the next call."""
    sandbox.run(_JAVASCRIPT, JAVASCRIPT)

    assert "ü 日本語 🦉!\n" == printed(sandbox.run("console.log(awaited)", JAVASCRIPT))
