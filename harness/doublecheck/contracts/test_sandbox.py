"""Checks of a session's instance, of its outputs, and of its languages (SBX-01 to SBX-08)."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from agentdouble.core import ledger
from doublecheck.client._sync.clock import PlatformClock
from doublecheck.contracts import inputs, sandboxes, sequences, wire
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, at_once, for_each
from doublecheck.contracts.instance_model import InstancesModel
from doublecheck.contracts.sandboxes import (
    COMMAND,
    JAVASCRIPT,
    PYTHON,
    CheckSandbox,
    failure,
    succeeded,
)
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError
from doublecheck.values.executions import BashResult, CodeResult, plain

FILE, APPLICATION = "file", "application"
COUNTED = "/tmp/doublecheck-count"  # noqa: S108 (of the sandbox)
COUNTS = {
    PYTHON: "x = globals().get('x', 0) + 1; print(x)",
    JAVASCRIPT: "globalThis.x = (globalThis.x ?? 0) + 1; console.log(x);",
    COMMAND: f"echo x >> {COUNTED}; wc -l < {COUNTED}",
}
BEFORE_THE_END = dt.timedelta(minutes=29, seconds=59)
PAST_IT = dt.timedelta(seconds=2)


@clause("SBX-01", writes=True)
def test_the_first_call_creates_the_instance(sandbox: CheckSandbox) -> None:
    """A first call with code or a command creates a new instance, and runs once."""
    boxes = {kind: sandbox.with_session(f"Another_one-{kind}") for kind in COUNTS}
    results = [_counted(box, kind) for kind, box in boxes.items()]

    counts = dict(zip(COUNTS, [int(result.stdout) for result in results], strict=True))
    assert dict.fromkeys(COUNTS, 1) == counts, f"a first call has run several times: {counts}"
    ids = {result.session_id for result in results}
    assert len(COUNTS) == len(ids), f"sessions share an instance: {listed(ids)}"
    wrong = [id_ for id_ in ids if not re.fullmatch(r"s-\S+", id_)]
    assert [] == wrong, f"SessionId does not begin with s-: {listed(wrong)}"


@clause("SBX-02", writes=True)
def test_the_same_session_is_reused(sandbox: CheckSandbox) -> None:
    """Later calls find every kind of state, even after errors, JavaScript and commands."""
    paths = sandboxes.leave(sandbox, "one")

    failure(sandbox.run("1 / 0"))
    failure(sandbox.run("throw new Error('on purpose')", JAVASCRIPT))
    sandbox.run("print('x' * 300_000)")
    sandbox.exec_bash("true")

    for _ in range(2):
        sandboxes.require_state(sandbox, paths, "one")


@for_clauses(("SBX-01", "SBX-02"), writes=True)
def test_first_calls_at_the_same_time_share_an_instance(sandbox: CheckSandbox, id_: str) -> None:
    """Several first calls of a session create one instance, in which each of them runs."""
    results = at_once([functools.partial(sandbox.run, "pass")] * 3, busy=(RefusedError,))

    ids = {result.session_id for result in results}
    assert 1 == len(ids), f"first calls at the same time create {len(ids)} instances"
    counts = sorted(succeeded(result).execution_count or 0 for result in results)
    assert [1, 2, 3] == counts, f"three calls count {listed(counts)}"


@clause("SBX-03", writes=True)
def test_the_instance_is_destroyed_after_thirty_minutes(
    sandbox: CheckSandbox, clock: PlatformClock
) -> None:
    """An instance keeps its state until thirty minutes have passed; an unused one then ends.

    One second later the session has a new instance without state, or is refused (U-TTL-EXTENDS,
    U-TTL-AFTER). That instance lives as long.
    """
    sandbox = replace(sandbox, ttl_s=None)
    id_ = succeeded(sandbox.run("pass")).session_id
    paths = sandboxes.leave(sandbox, "one")

    clock.advance(BEFORE_THE_END)
    used = sandbox.with_session("used")
    assert 1 == _count(used, PYTHON), "a new session has the state of another"
    clock.advance(PAST_IT)
    assert 2 == _count(used, PYTHON), "a session ends with an older one"

    if _count(sandbox, PYTHON) is None:
        return
    assert id_ != succeeded(sandbox.run("pass")).session_id, "the instance outlives its time"
    sandboxes.require_state(sandbox, paths, None)
    clock.advance(BEFORE_THE_END)
    assert 2 == _count(sandbox, PYTHON), "the second instance of a session ends early"
    clock.advance(minutes=30)  # also past a deadline that was set anew
    assert _count(sandbox, PYTHON) in (None, 1), (
        "the second instance of a session outlives its time"
    )


@clause("SBX-03", writes=True)
def test_a_session_that_is_begun_again_lives_as_long(
    sandbox: CheckSandbox, clock: PlatformClock
) -> None:
    """A session that was ended has a new instance, with thirty minutes of its own."""
    sandbox = replace(sandbox, ttl_s=None)
    assert 1 == _count(sandbox, PYTHON), "a new session has state"
    clock.advance(minutes=20)
    sandbox.end()
    if _count(sandbox, PYTHON) is None:
        not_observable("a session that was ended is refused (U-TOOL-SESSION-ENDED)")
    clock.advance(minutes=20)
    assert 2 == _count(sandbox, PYTHON), "a session that was begun again ends early"


@clause("SBX-03", writes=True)
@pytest.mark.parametrize("together", [False, True], ids=["in turn", "at once"])
def test_every_session_lives_as_long(
    sandbox: CheckSandbox, clock: PlatformClock, together: bool
) -> None:
    """How an instance was created does not matter, nor what else is, nor how often it is used.

    Each kind of call creates one that is not used until the end, and others that are used just
    before: once, several times, or in every way. At the end, only the first has certainly ended.
    """
    sandbox = replace(sandbox, ttl_s=None)
    kinds = (*COUNTS, FILE, *([APPLICATION] if sandbox.platform.target.reference_app else ()))
    uses = ("unused", "once", "often", "variously")
    boxes = {
        (kind, use): sandbox.with_session(f"{use}-{kind}-{together}")
        for kind in kinds
        for use in uses
    }

    def counts(*chosen: str) -> dict[str, int | None]:
        some = {
            f"{key[1]}: {key[0]}": (*key, box) for key, box in boxes.items() if key[1] in chosen
        }
        calls = [functools.partial(_count, box, kind) for kind, _, box in some.values()]
        return dict(zip(some, at_once(calls) if together else [it() for it in calls], strict=True))

    def wrong(count: int, *chosen: str) -> dict[str, int | None]:
        return {name: it for name, it in counts(*chosen).items() if it != count}

    assert {} == wrong(1, *uses), "a new session has state"
    for (_, use), box in boxes.items():
        if use == "variously":
            _use_variously(box)
    for count in (2, 3):
        clock.advance(minutes=10)
        assert {} == wrong(count, "often"), f"lost after {10 * (count - 1)} minutes"
    clock.advance(BEFORE_THE_END - dt.timedelta(minutes=20))
    lost = wrong(2, "once", "variously") | wrong(4, "often")
    assert {} == lost, "lost before thirty minutes have passed"
    clock.advance(PAST_IT)
    outlived = {name: it for name, it in counts("unused").items() if it not in (None, 1)}
    assert {} == outlived, "alive after thirty minutes"


@clause("SBX-03", writes=True)
def test_nothing_survives_the_end(
    sandbox: CheckSandbox, clock: PlatformClock, examples: Examples
) -> None:
    """Whatever was set or written before, an instance that has ended leaves nothing."""
    if ledger.choose("U-TTL-AFTER") != ledger.unknowns()["U-TTL-AFTER"].default.name:
        not_observable("an expired session is refused (U-TTL-AFTER)")
    rules = ("assign", "read", "write", "load", "expire")
    sandbox = replace(sandbox, ttl_s=None)
    boxes = [sandbox, sandbox.with_session("other")]
    steps = InstancesModel.sequences(rules, 24)
    sequences.run(examples, lambda: InstancesModel(boxes, clock=clock), steps)


def _require_counts(boxes: Mapping[str, CheckSandbox], count: int, since: str) -> None:
    counts = {kind: _count(box, kind) for kind, box in boxes.items()}
    expected = dict.fromkeys(boxes, count)
    assert expected == counts, f"the state is lost after {since}: {instead(counts, expected)}"


def _count(box: CheckSandbox, kind: str) -> int | None:
    """Return how often this was called in an instance, or None if the session is refused."""
    try:
        if kind == APPLICATION:
            return _counted_by_an_application(box)
        if kind != FILE:
            return int(_counted(box, kind).stdout)
        count = len(box.read_file(COUNTED) or b"")
        box.upload(COUNTED, b"x" * (count + 1))
    except RefusedError:
        return None
    return len(box.read_file(COUNTED) or b"")


def _use_variously(box: CheckSandbox) -> None:
    """Use a session in every way, also with code that fails."""
    for code, language in (("1 / 0", PYTHON), ("throw 1", JAVASCRIPT), ("pass", PYTHON)):
        box.run(code, language)
    box.exec_bash("false")
    box.upload("/tmp/doublecheck-various", b"content")  # noqa: S108 (of the sandbox)


def _counted_by_an_application(box: CheckSandbox) -> int | None:
    """Return the count of a session in which the reference application runs the code."""
    payload = {"do": "run_code", "prompt": COUNTS[PYTHON]}
    caller = {"user_id": box.user_id or "", "session_id": box.session_id or ""}
    answer = wire.invoke(box.platform, payload, caller)
    if answer.status_code >= 400:
        return None
    _, data = wire.inner({"Result": wire.returned(answer)})
    return int("".join(output.get("text") or "" for output in data["outputs"]))


def _counted(box: CheckSandbox, kind: str) -> CodeResult | BashResult:
    if kind == COMMAND:
        return box.exec_bash(COUNTS[kind])
    return succeeded(box.run(COUNTS[kind], kind))


COLOURED = "\x1b[1;31m red \x1b[0m over\rwritten\b"
TEXTS = inputs.texts(carriage_returns=True).map(lambda text: f"{text}{COLOURED}")
MESSAGE = "on purpose: ü 日本語 🦉, longer than thirty-two characters\n  in two lines"
RAISING = f"def broken_here():\n    raise {{}}({MESSAGE!r})\n\nbroken_here()"
RAISING_JAVASCRIPT = (
    f"function broken_here() {{ throw new RangeError({json.dumps(MESSAGE)}); }}\nbroken_here();"
)
RAISING_LATER = f"""
async function broken_later() {{
    await Promise.resolve();
    throw new RangeError({json.dumps(MESSAGE)});
}}
await broken_later();
"""
# a name and a message, which is left open for syntax errors
ERRORS = (
    (RAISING.format("ValueError"), PYTHON, "ValueError", MESSAGE),
    (f"assert False, {MESSAGE!r}", PYTHON, "AssertionError", MESSAGE),
    (f"class Own(Exception): pass\n{RAISING.format('Own')}", PYTHON, "Own", MESSAGE),
    ("print('before')\n1 / 0", PYTHON, "ZeroDivisionError", "division by zero"),
    ("nobody", PYTHON, "NameError", "name 'nobody' is not defined"),
    ("print('before')\ndef f(:", PYTHON, "SyntaxError", None),
    ("if True:\nprint('before')", PYTHON, "IndentationError", None),
    (RAISING_JAVASCRIPT, JAVASCRIPT, "RangeError", MESSAGE),
    ("print('x' * 300_000)\n1 / 0", PYTHON, "ZeroDivisionError", "division by zero"),
    (f"console.log('x'.repeat(300_000));\n{RAISING_JAVASCRIPT}", JAVASCRIPT, "RangeError", MESSAGE),
    ("raise ValueError", PYTHON, "ValueError", ""),
    ("let broken = {", JAVASCRIPT, "SyntaxError", None),
)
LARGE = 900_000  # characters; a sandbox may cut more than a megabyte
LARGE_OUTPUTS = {
    PYTHON: f"print(''.join(f'{{n:09}}\\n' for n in range({LARGE // 10})), end='')",
    JAVASCRIPT: f"for (let n = 0; n < {LARGE // 10}; n += 1000) console.log(Array.from("
    "{length: 1000}, (_, i) => String(n + i).padStart(9, '0')).join('\\n'));",
}
STREAMS = """
import subprocess, sys, threading
for n in range(3):
    print('out', n, flush=True)
    print('err', n, file=sys.stderr, flush=True)
"""
LOGGING = "console.log('out'); console.error('err'); console.log('last');"
AWAITING = """
(async () => {
    console.log('before');
    await Promise.resolve();
    console.log('after');
})();
"""
MANY_OUTPUTS = f"""
import sys
from IPython.display import display
for n in range({inputs.MANY}):
    print('out', n)
    print('err', n, file=sys.stderr)
    display(f'value {{n}}')
"""
OTHER_WRITERS = """
thread = threading.Thread(target=print, args=("of a thread",))
thread.start()
thread.join()
_ = subprocess.run(["echo", "of a process"])
print("last")
"""


OF_OTHERS = ("last", "of a process", "of a thread")


def _printed(result: CodeResult) -> str:
    """Return standard output. Fail unless it is all that there is."""
    others = [it for it in result.outputs if (it.output_type, it.name) != ("stream", "stdout")]
    more = [output for output in others if output.text or output.data or output.ename]
    assert [] == more, f"there are other outputs than stdout: {listed(more)}"
    return result.stdout


@clause("SBX-05", writes=True)
@for_each(text=TEXTS)
def test_standard_output_is_a_stream(sandbox: CheckSandbox, text: str) -> None:
    """Written text arrives complete, in a stream named stdout only."""
    ran = sandbox.run(f"import sys\nwritten = sys.stdout.write({text!r})")

    printed = _printed(ran)
    assert text == printed, f"stdout is {instead(printed, text)}"


@clause("SBX-05", writes=True)
@for_each(cost=2, text=inputs.texts())
def test_the_standard_output_of_javascript_is_a_stream(sandbox: CheckSandbox, text: str) -> None:
    """JavaScript logs to the same stream."""
    ran = sandbox.run(f"console.log({json.dumps(text)});", JAVASCRIPT)

    printed = _printed(ran)
    expected = f"{text}\n"
    assert expected == printed, f"stdout of JavaScript is {instead(printed, expected)}"


@clause("SBX-05", writes=True)
@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT])
def test_large_outputs_arrive(sandbox: CheckSandbox, language: str) -> None:
    """Almost a megabyte of output arrives complete."""
    text = sandbox.run(LARGE_OUTPUTS[language], language).stdout

    assert LARGE == len(text), f"{len(text)} of {LARGE} characters arrive"
    lines, expected = text.split(), [f"{number:09}" for number in range(LARGE // 10)]
    assert expected == lines, f"the output differs {instead(lines, expected)}"


@clause("SBX-05", writes=True)
def test_the_streams_are_apart(sandbox: CheckSandbox) -> None:
    """Each stream has its own text, in order; values and errors are in neither.

    The output of threads and of child processes arrives, too, perhaps in another order.
    """
    out, err = ("".join(f"{name} {n}\n" for n in range(3)) for name in ("out", "err"))
    codes = ("pass", f"{STREAMS}6 * 7", f"{STREAMS}1 / 0", "print(end='after')", OTHER_WRITERS)
    nothing, value, failed, after, others = map(sandbox.run, codes)
    logged = sandbox.run(LOGGING, JAVASCRIPT)

    streams = [(result.stdout, result.stderr) for result in (nothing, value, after)]
    expected = [("", ""), (out, err), ("after", "")]
    assert expected == streams, f"stdout and stderr are {instead(streams, expected)}"
    assert out == failed.stdout, f"stdout before an error is {instead(failed.stdout, out)}"
    assert failed.stderr.startswith(err), f"stderr before an error is {short(failed.stderr)}"
    lines, expected_lines = sorted(others.stdout.splitlines()), [*OF_OTHERS]
    assert expected_lines == lines, f"threads and processes print {listed(lines)}"
    printed = (logged.stdout, logged.stderr)
    assert ("out\nlast\n", "err\n") == printed, f"the streams of JavaScript are {printed}"


@clause("SBX-05", writes=True)
def test_many_outputs_arrive(sandbox: CheckSandbox) -> None:
    """Values, lines and error lines arrive complete and in order, however many there are."""
    ran = sandbox.run(MANY_OUTPUTS)

    numbers = [f"{number}" for number in range(inputs.MANY)]
    values = [output.data.get("text/plain") for output in ran.outputs if output.data]
    assert [f"'value {number}'" for number in numbers] == values, "some values are missing"
    assert [f"out {number}" for number in numbers] == ran.stdout.splitlines(), "of stdout"
    assert [f"err {number}" for number in numbers] == ran.stderr.splitlines(), "of stderr"


@clause("SBX-05", writes=True)
def test_what_is_printed_after_an_await_arrives(sandbox: CheckSandbox) -> None:
    """It arrives once, with this call or with the next one."""
    first = sandbox.run(AWAITING, JAVASCRIPT)
    second = sandbox.run("console.log('next');", JAVASCRIPT)

    lines = [*first.stdout.splitlines(), *second.stdout.splitlines()]
    assert ["after", "before", "next"] == sorted(lines), "other lines than those that were logged"


@clause("SBX-06", writes=True)
def test_a_failure_tells_what_happened(sandbox: CheckSandbox) -> None:
    """Name, value and traceback are present, the status is not ok, and the next code runs."""
    for code, language, name, value in ERRORS:
        error = failure(sandbox.run(code, language))

        message = error.evalue or ""  # null if the exception has none
        assert name == error.ename, f"ename is {error.ename!r} instead of {name}"
        assert value in (None, message), f"evalue of {name} is {instead(message, value)}"
        assert message or value == "", f"evalue of {name} is empty"
        where = "broken_here" if "broken_here" in code else ""
        text = plain("\n".join(error.traceback or ()))
        assert name in text, f"the traceback does not name {name}: {short(text)}"
        assert where in text, f"the traceback does not show where {name} was raised: {short(text)}"
        following = "print('after')" if language == PYTHON else "console.log('after')"
        after = succeeded(sandbox.run(following, language)).stdout
        assert "after\n" == after, f"after {name}, the next code prints {short(after)}"


@clause("SBX-06", writes=True)
def test_a_thrown_value_is_a_failure(sandbox: CheckSandbox) -> None:
    """JavaScript may throw what is no Error. The failure shows it, and the next code runs."""
    for value in ("a thrown text", 4711, {"reason": "a thrown object"}):
        error = failure(sandbox.run(f"throw {json.dumps(value)};", JAVASCRIPT))

        told = f"{error.evalue}\n{error.traceback}"
        assert isinstance(value, dict) or str(value) in told, f"the failure does not show {value}"
        assert not isinstance(value, str) or value in (error.evalue or ""), "evalue has no message"
        following = sandbox.run("console.log('after');", JAVASCRIPT)
        assert "after\n" == succeeded(following).stdout, "the next code does not run"


@clause("SBX-06", writes=True)
def test_what_is_awaited_may_fail(sandbox: CheckSandbox) -> None:
    """If JavaScript may await outside of functions, a rejected promise is a failure."""
    _need_await(sandbox)
    error = failure(sandbox.run(f"await Promise.reject(new RangeError({MESSAGE!r}));", JAVASCRIPT))
    assert ("RangeError", MESSAGE) == (error.ename, error.evalue), "another error"

    raised = failure(sandbox.run(RAISING_LATER, JAVASCRIPT))
    assert ("RangeError", MESSAGE) == (raised.ename, raised.evalue), "another error"
    assert "broken_later" in plain("\n".join(raised.traceback or ())), "the traceback is missing"
    assert "after\n" == succeeded(sandbox.run("console.log('after');", JAVASCRIPT)).stdout, (
        "no more"
    )


@clause("SBX-06", writes=True)
@for_each(message=inputs.texts(empty=False, long=400))
def test_the_value_of_an_error_is_its_message(sandbox: CheckSandbox, message: str) -> None:
    """The whole message of this error arrives, after the printed text."""
    ran = sandbox.run(f"print('before')\nraise LookupError({message!r})")

    error = failure(ran)
    assert "LookupError" == error.ename, f"ename is {error.ename!r} instead of LookupError"
    assert message == error.evalue, f"evalue is {instead(error.evalue, message)}"
    assert "before\n" == ran.stdout, f"stdout before an error is {short(ran.stdout)}"


def _need_await(sandbox: CheckSandbox) -> None:
    """Skip a check if JavaScript may not await outside of functions, which is left open."""
    if sandbox.run("await Promise.resolve(1);", JAVASCRIPT).status != "ok":
        not_observable("JavaScript cannot await outside of functions")


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
    toString() { return JSON.stringify({...kept, text: awaited}); }
}
(async () => { globalThis.awaited = await Promise.resolve(text); })();
"""
# code that defines something, prints it, and has a value
LANGUAGES = {
    PYTHON: (_PYTHON, "print(told())", "6 * 7"),
    JAVASCRIPT: (_JAVASCRIPT, "console.log(String(new Told()))", "6 * 7"),
}


@clause("SBX-08", writes=True)
def test_python_and_javascript_are_spoken(sandbox: CheckSandbox) -> None:
    """One session runs multi-line code in each language, with separate state per language.

    JavaScript has promises, whose results are available in the next call.
    """
    firsts, printed, valued = (
        [succeeded(sandbox.run(codes[n], name)) for name, codes in LANGUAGES.items()]
        for n in range(3)
    )
    again = [succeeded(sandbox.run(codes[1], name)) for name, codes in LANGUAGES.items()]

    counted = [_counted(sandbox, language).stdout.strip() for language in [*LANGUAGES] * 3]
    assert ["1", "1", "2", "2", "3", "3"] == counted, "code that is sent again does not run again"
    expected = {"squares": [0, 1, 4, 9], "text": "ü 日本語 🦉"}
    for result in (*printed, *again):
        value = json.loads(result.stdout)
        assert expected == value, f"code prints {instead(value, expected)}"
    values = [result.text for result in valued]
    assert ["42", "42"] == values, f"6 * 7 in Python and JavaScript is {listed(map(str, values))}"
    ids = {result.session_id for result in (*firsts, *printed, *valued)}
    assert 1 == len(ids), f"one session has {len(ids)} instances"


@clause("SBX-08", writes=True)
def test_code_goes_on_after_an_await(sandbox: CheckSandbox) -> None:
    """If JavaScript may await outside of functions, what follows runs."""
    _need_await(sandbox)

    ran = succeeded(sandbox.run("await Promise.resolve(1); console.log('after');", JAVASCRIPT))

    assert "after\n" == ran.stdout, f"after an await {short(ran.stdout)} is printed"
