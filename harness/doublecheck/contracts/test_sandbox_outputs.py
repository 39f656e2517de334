"""Checks of the outputs, errors and languages of code in a sandbox (SBX-05, 06 and 08)."""

from __future__ import annotations

import json

import pytest

from doublecheck.contracts import inputs, sandboxes
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import for_each
from doublecheck.contracts.sandboxes import JAVASCRIPT, PYTHON, CheckSandbox, failure, succeeded
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.verdicts import not_observable
from doublecheck.values.executions import CodeResult, plain

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

    values = [output.data.get("text/plain") for output in ran.outputs if output.data]
    arrived = {"'value {}'": values, "out {}": ran.stdout.splitlines()}
    arrived["err {}"] = ran.stderr.splitlines()
    for form, actual in arrived.items():
        expected = inputs.many(form)
        assert expected == actual, f"the outputs are {instead(actual, expected)}"


@clause("SBX-05", writes=True)
def test_what_is_printed_after_an_await_arrives(sandbox: CheckSandbox) -> None:
    """It arrives once, with this call or with the next one."""
    first = sandbox.run(AWAITING, JAVASCRIPT)
    second = sandbox.run("console.log('next');", JAVASCRIPT)

    lines = sorted([*first.stdout.splitlines(), *second.stdout.splitlines()])
    assert ["after", "before", "next"] == lines, f"the two calls print {listed(lines)}"


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

        if isinstance(value, str):
            assert value in (error.evalue or ""), f"evalue is {error.evalue!r}"
        if isinstance(value, int):
            shown = f"{error.evalue}\n{error.traceback}"
            assert str(value) in shown, f"the failure does not show {value}"
        _require_next_code(sandbox)


@clause("SBX-06", writes=True)
def test_what_is_awaited_may_fail(sandbox: CheckSandbox) -> None:
    """If JavaScript may await outside of functions, a rejected promise is a failure."""
    _need_await(sandbox)
    rejected = f"await Promise.reject(new RangeError({json.dumps(MESSAGE)}));"
    expected = ("RangeError", MESSAGE)
    for code, where in ((rejected, ""), (RAISING_LATER, "broken_later")):
        error = failure(sandbox.run(code, JAVASCRIPT))

        told = (error.ename, error.evalue)
        assert expected == told, f"the error is {instead(told, expected)}"
        text = plain("\n".join(error.traceback or ()))
        assert where in text, f"the traceback does not show {where}: {short(text)}"
    _require_next_code(sandbox)


@clause("SBX-06", writes=True)
@for_each(message=inputs.texts(empty=False, long=400))
def test_the_value_of_an_error_is_its_message(sandbox: CheckSandbox, message: str) -> None:
    """The whole message of this error arrives, after the printed text."""
    ran = sandbox.run(f"print('before')\nraise LookupError({message!r})")

    error = failure(ran)
    assert "LookupError" == error.ename, f"ename is {error.ename!r} instead of LookupError"
    assert message == error.evalue, f"evalue is {instead(error.evalue, message)}"
    assert "before\n" == ran.stdout, f"stdout before an error is {short(ran.stdout)}"


def _require_next_code(sandbox: CheckSandbox) -> None:
    after = succeeded(sandbox.run("console.log('after');", JAVASCRIPT)).stdout
    assert "after\n" == after, f"after a failure, the next code prints {short(after)}"


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

    counted = [sandboxes.counted(sandbox, language).stdout.strip() for language in [*LANGUAGES] * 3]
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
