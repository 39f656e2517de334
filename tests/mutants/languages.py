"""Mutants of JavaScript: what is printed after an await, what is thrown, what is awaited in vain."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from doublecheck.client._sync.platform import Platform
from tests.mutants import Witnessed, sandbox, witnesses
from tests.mutants.changes import at, put, where
from tests.mutants.wire import Change
from tests.mutants.witnesses import require

JAVASCRIPT = "javascript"
RESTORE = "globalThis.printed ??= console.log; console.log = globalThis.printed;\n"

# ---- changes


def muted(text: str) -> str:
    """Lose what is printed after the first await."""
    return RESTORE + re.sub(r"(\bawait [^;]*;)", r"\1 console.log = () => {};", text, count=1)


def of_javascript(change: Callable[[Any], Any]) -> Change:
    """Change the data of executions of JavaScript."""
    return sandbox.data(where(sandbox.is_javascript, change))


def successes(select: Callable[[str], Any]) -> Change:
    """Report failures of selected JavaScript as successes."""

    def meant(value: Any) -> bool:
        chosen = select(value["data"]["code"])
        return bool(sandbox.is_javascript(value) and sandbox.failed(value) and chosen)

    def succeeded(value: Any) -> Any:
        return sandbox.succeeds(at("data.outputs", sandbox.without("error"))(value))

    return sandbox.inner(where(meant, succeeded))


def is_thrown_value(code: str) -> bool:
    """Return whether code throws what is no Error."""
    return re.search(r"throw\s+(?!new\b)", code) is not None


def errors(change: Callable[[Any], Any]) -> Change:
    """Change the errors of JavaScript."""
    return of_javascript(
        at("outputs.*", where(lambda output: sandbox.is_of(output, "error"), change))
    )


# ---- witnesses


def prints(code: str, expected: str) -> Callable[[Platform], None]:
    """Run JavaScript that prints."""

    def witness(platform: Platform) -> None:
        box = witnesses.box_of(platform)
        require(expected, witnesses.printed(box, code, JAVASCRIPT))

    return witness


def throws(code: str, value: str = "") -> Callable[[Platform], None]:
    """Run JavaScript that throws."""

    def witness(platform: Platform) -> None:
        result = witnesses.box_of(platform).run(code, JAVASCRIPT)
        assert result.status != "ok"
        assert result.error is not None
        told = [output.evalue for output in result.outputs if output.evalue]
        assert value in "".join(told), told

    return witness


def error_output(platform: Platform) -> None:
    """Run JavaScript that writes to standard error."""
    box = witnesses.box_of(platform)
    require("out\n", witnesses.printed(box, "console.error('err'); console.log('out')", JAVASCRIPT))


def traceback_of_a_promise(platform: Platform) -> None:
    """Run an async function that throws."""
    code = "const f = async () => { await null; throw new Error('inside'); };\nawait f();"
    result = witnesses.box_of(platform).run(code, JAVASCRIPT)
    assert any(output.traceback for output in result.outputs)


AWAITED = "console.log(1); await Promise.resolve(); console.log(2);"
REJECTED = "await Promise.reject(new TypeError('no'));"
TABLE: dict[str, dict[str, Any]] = {
    "SBX-05": {
        "lose_what_is_printed_after_an_await": Witnessed(
            sandbox.code(muted, python=False), prints(AWAITED, "1\n2\n")
        ),
        "write_console_error_to_standard_output": Witnessed(
            of_javascript(
                at(
                    "outputs.*",
                    where(lambda output: sandbox.is_of(output, "stderr"), put(name="stdout")),
                )
            ),
            error_output,
        ),
    },
    "SBX-06": {
        "tell_a_thrown_text_as_success": Witnessed(successes(is_thrown_value), throws("throw 'x'")),
        "tell_a_rejected_promise_as_success": Witnessed(
            successes(lambda code: "Promise.reject" in code), throws(REJECTED)
        ),
        "lose_the_value_that_is_thrown": Witnessed(
            errors(where(lambda output: output["ename"] == "Uncaught", put(evalue=""))),
            throws("throw 'the value'", "the value"),
        ),
        "lose_the_traceback_of_an_async_function": Witnessed(
            of_javascript(
                where(
                    lambda data: "async" in data["code"],
                    at("outputs.*", put(traceback=[])),
                )
            ),
            traceback_of_a_promise,
        ),
    },
    "SBX-08": {
        "run_what_follows_an_await_not_at_all": Witnessed(
            sandbox.code(
                lambda text: (
                    text if "{" in text else re.sub(r"(?s)(\bawait [^;]*;).*", r"\1", text)
                ),
                python=False,
            ),
            prints(AWAITED, "1\n2\n"),
        ),
    },
}
