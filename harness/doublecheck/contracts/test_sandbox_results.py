"""Checks of what code came to: outputs, errors, counts and languages (SBX-05 to SBX-08)."""

from __future__ import annotations

import json

from doublecheck.contracts import inputs
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import for_each
from doublecheck.contracts.sandboxes import (
    JAVASCRIPT,
    PYTHON,
    Sandbox,
    failure,
    printed,
    succeeded,
    texts_of_values,
)
from doublecheck.values.failures import plain

COLOURED = "\x1b[1;31m red \x1b[0m"
TEXTS = inputs.texts(carriage_returns=True).map(lambda text: f"{text}{COLOURED}")
MESSAGES = inputs.texts(empty=False, long=400)
MESSAGE = "on purpose: ü 日本語 🦉, longer than thirty-two characters\n  in two lines"
RAISING = f"def broken_here():\n    raise {{}}({MESSAGE!r})\n\nbroken_here()"
ERRORS = {
    "a runtime error": (RAISING.format("ValueError"), PYTHON, "ValueError", MESSAGE),
    "a failed assertion": (f"assert False, {MESSAGE!r}", PYTHON, "AssertionError", MESSAGE),
    "an error of one's own": (
        f"class OwnError(Exception): pass\n{RAISING.format('OwnError')}",
        *(PYTHON, "OwnError", MESSAGE),
    ),
    "a division": ("print('before')\n1 / 0", PYTHON, "ZeroDivisionError", "division by zero"),
    "a name that is not there": ("nobody", PYTHON, "NameError", "name 'nobody' is not defined"),
    "broken syntax": ("print('before')\ndef f(:", PYTHON, "SyntaxError", None),
    "broken indentation": ("if True:\nprint('before')", PYTHON, "IndentationError", None),
    "an error of JavaScript": (
        f"function brokenHere() {{ throw new RangeError({json.dumps(MESSAGE)}); }}\nbrokenHere();",
        *(JAVASCRIPT, "RangeError", MESSAGE),
    ),
    "broken syntax of JavaScript": ("let broken = {", JAVASCRIPT, "SyntaxError", None),
}


@clause("SBX-05", writes=True)
@for_each(text=TEXTS)
def test_standard_output_is_a_stream(sandbox: Sandbox, text: str) -> None:
    """What code writes arrives whole, at every call, as a stream named stdout and no other."""
    code = f"import sys\nwritten = sys.stdout.write({text!r})"

    for _ in range(2):
        ran = sandbox.run(code)
        assert (text, "") == (printed(ran), printed(ran, "stderr"))


@clause("SBX-05", writes=True)
@for_each(cost=2, text=inputs.texts())
def test_the_standard_output_of_javascript_is_a_stream(sandbox: Sandbox, text: str) -> None:
    """What JavaScript logs is in a stream of the same name."""
    ran = sandbox.run(f"console.log({json.dumps(text)});", JAVASCRIPT)

    assert f"{text}\n" == printed(ran)


@clause("SBX-05", writes=True)
def test_the_streams_are_apart(sandbox: Sandbox) -> None:
    """Each has what was written to it, in its order, and a value or an error is in none of them."""
    code = (
        "import sys\n"
        "for n in range(3):\n"
        "    print('out', n, flush=True)\n"
        "    print('err', n, file=sys.stderr, flush=True)\n"
    )
    out, err = ("".join(f"{name} {n}\n" for n in range(3)) for name in ("out", "err"))
    nothing, value = sandbox.run("pass"), sandbox.run(f"{code}6 * 7")
    failed, after = sandbox.run(f"{code}1 / 0"), sandbox.run("print(end='after')")

    streams = [(printed(one), printed(one, "stderr")) for one in (nothing, value, after)]
    assert [("", ""), (out, err), ("after", "")] == streams
    assert out == printed(failed)
    assert printed(failed, "stderr").startswith(err)


@clause("SBX-06", writes=True)
def test_a_failure_tells_what_happened(sandbox: Sandbox) -> None:
    """An output has name, value and traceback, the status is not ok, and the next code runs."""
    for what, (code, language, name, value) in ERRORS.items():
        error = failure(sandbox.run(code, language))

        assert (name, value or error.evalue) == (error.ename, error.evalue), what
        assert error.evalue, what
        _has_traceback(error.traceback, name, "broken_here" if "broken_here" in code else "")
        following = "print('after')" if language == PYTHON else "console.log('after')"
        assert "after\n" == printed(succeeded(sandbox.run(following, language))), what


@clause("SBX-06", writes=True)
@for_each(message=MESSAGES)
def test_the_value_of_an_error_is_its_message(sandbox: Sandbox, message: str) -> None:
    """The whole message arrives, of this error and not of one before, behind what was printed."""
    ran = sandbox.run(f"print('before')\nraise LookupError({message!r})")

    assert ("LookupError", message) == (failure(ran).ename, failure(ran).evalue)
    assert "before\n" == printed(ran)


@clause("SBX-07", writes=True)
def test_executions_are_counted(sandbox: Sandbox) -> None:
    """From 1 on, each by one, whatever it came to, and for each instance by itself."""
    codes = ["nothing = 1", "print(1)", "1 / 0", "6 * 7", "def f(:", "6 * 7"]
    other = sandbox.with_session("other")

    results = [sandbox.run(code) for code in codes]
    others = [other.run("nothing = 1"), other.run("6 * 7")]

    assert [1, 2, 3, 4, 5, 6] == [one.execution_count for one in results]
    assert [1, 2] == [one.execution_count for one in others]
    for one in (*results, *others):
        counts = {output.execution_count for output in one.outputs}
        assert counts <= {None, one.execution_count}, one.outputs


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
    """Code of each language runs, of several lines and with its own state in one session."""
    firsts = [succeeded(sandbox.run(one[0], name)) for name, one in LANGUAGES.items()]
    told = [succeeded(sandbox.run(one[1], name)) for name, one in LANGUAGES.items()]
    valued = [succeeded(sandbox.run(one[2], name)) for name, one in LANGUAGES.items()]
    again = [succeeded(sandbox.run(one[1], name)) for name, one in LANGUAGES.items()]

    expected = {"squares": [0, 1, 4, 9], "text": "ü 日本語 🦉"}
    assert [expected] * 4 == [json.loads(printed(one)) for one in (*told, *again)]
    assert [["42"], ["42"]] == [texts_of_values(one) for one in valued]
    assert 1 == len({one.session_id for one in (*firsts, *told, *valued)})


@clause("SBX-08", writes=True)
def test_javascript_has_promises(sandbox: Sandbox) -> None:
    """What code waits for is there at the next call."""
    sandbox.run(_JAVASCRIPT, JAVASCRIPT)

    assert "ü 日本語 🦉!\n" == printed(sandbox.run("console.log(awaited)", JAVASCRIPT))


def _has_traceback(traceback: tuple[str, ...] | None, name: str, where: str) -> None:
    """Fail unless a traceback names the error, and more than its last line."""
    told = plain("\n".join(traceback or ()))
    assert name in told, f"the traceback does not name {name}: {told!r}"
    assert where in told, f"the traceback does not tell where {name} was raised: {told!r}"
