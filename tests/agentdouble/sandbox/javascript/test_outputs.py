from __future__ import annotations

import pytest

from agentdouble.processes.fork_server.protocol import OUTPUT_LIMIT
from tests.agentdouble.sandbox.javascript.session import Session, streams, text_of

pytestmark = pytest.mark.once


def test_console_writes_to_stdout_and_stderr_in_order(shared: Session) -> None:
    """log, info and debug go to stdout, warn and error to stderr."""
    code = (
        "console.log('%d', 1); console.info(2); console.warn(3); console.error(4); console.debug(5)"
    )

    assert [("stdout", "1\n2\n"), ("stderr", "3\n4\n"), ("stdout", "5\n")] == streams(shared(code))


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "console.log('x'.repeat(1e8))",
        "let rest = new Uint8Array(1e7).fill(120); while (rest.length) rest = rest.subarray(Deno.stdout.writeSync(rest))",
    ],
    ids=["console", "raw"],
)
def test_output_over_the_stream_limit_is_dropped(session: Session, code: str) -> None:
    """The kernel cuts it at 8 MiB per cell; the next cell has the full limit again."""
    for _ in range(2):
        (name, text), last = streams(session(f"{code}; console.error('after')"))

        assert ("stdout", OUTPUT_LIMIT) == (name, len(text or ""))
        assert ("stderr", "after\n") == last


def test_display_shows_media_between_outputs(shared: Session) -> None:
    """It takes Jupyter's symbol, Deno.jupyter's helpers and raw bundles."""
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


def test_the_value_of_display_is_not_shown(shared: Session) -> None:
    """It can be awaited."""
    codes = ("display(1)", "await display(2)", "for (;;) { display(3); break }")

    assert [["display_data"]] * 3 == [[o.output_type for o in shared(c).outputs] for c in codes]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("Promise.reject(new Error('x')); 1", "Uncaught (in promise) Error: x\n"),
        ("queueMicrotask(() => { throw new Error('y') }); 1", "Uncaught Error: y\n"),
    ],
)
def test_unhandled_errors_are_reported_on_stderr(shared: Session, code: str, text: str) -> None:
    """The session goes on."""
    result = shared(code)

    (message,) = streams(result)
    assert ("1", "stderr") == (text_of(result), message[0])
    assert (message[1] or "").startswith(text)
