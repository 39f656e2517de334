from __future__ import annotations

import base64
import json
import re
import struct
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import TOO_DEEP, CellOutput
from tests.agentdouble.calling import output, run, text

LIMIT = 100


def collected(*messages: tuple[str, dict[str, Any]], limit: int = LIMIT) -> tuple[CellOutput, ...]:
    collector = OutputCollector(limit)
    for msg_type, content in messages:
        collector.add(msg_type, content)
    return collector.outputs()


def stream(text: str, name: str = "stdout") -> tuple[str, dict[str, Any]]:
    return "stream", {"name": name, "text": text}


def display(data: str, display_id: str | None = None, *, update: bool = False) -> Any:
    transient = {} if display_id is None else {"display_id": display_id}
    content = {"data": {"text/plain": data}, "metadata": {}, "transient": transient}
    return "update_display_data" if update else "display_data", content


def as_output(data: str) -> CellOutput:
    return CellOutput("display_data", data={"text/plain": data}, metadata={})


def out(text: str, name: str = "stdout") -> CellOutput:
    return CellOutput("stream", name=name, text=text)


CLEAR: Any = ("clear_output", {"wait": False})
CLEAR_BEFORE_NEXT: Any = ("clear_output", {"wait": True})


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([stream("a"), stream("b")], [out("ab")], id="chunks are joined"),
        pytest.param(
            [stream("a"), stream("b", "stderr"), stream("c")],
            [out("a"), out("b", "stderr"), out("c")],
            id="in order",
        ),
        pytest.param(
            [stream("a"), display("d"), stream("b")],
            [out("a"), as_output("d"), out("b")],
            id="a display parts a stream",
        ),
        pytest.param(
            [display("1", "x"), display("2", "x"), display("3", "x", update=True)],
            [as_output("3"), as_output("3")],
            id="an update changes every display of its id",
        ),
        pytest.param([stream("a"), CLEAR, stream("b")], [out("b")], id="clear, then more"),
        pytest.param(
            [stream("a"), CLEAR_BEFORE_NEXT, stream("b"), stream("c")],
            [out("bc")],
            id="clear before the next stream",
        ),
        pytest.param(
            [display("a", "x"), CLEAR_BEFORE_NEXT, display("b"), display("c", "x", update=True)],
            [as_output("b")],
            id="what was cleared is not updated",
        ),
    ],
)
def test_messages_become_outputs(messages: list[Any], expected: list[CellOutput]) -> None:
    """Outputs are what a notebook finally shows."""
    assert tuple(expected) == collected(*messages)


def cut(dropped: int) -> CellOutput:
    text = f"[output cut: the limit is 100 bytes, and at least {dropped} bytes more were dropped]\n"
    return out(text, "stderr")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [stream("x" * 100), stream("yy", "stderr"), stream("z")],
            [out("x" * 100), cut(3)],
            id="what comes after is counted",
        ),
        pytest.param([stream("x" * 99 + "ü")], [out("x" * 99), cut(1)], id="never half a letter"),
        pytest.param([display("x" * 100), stream("a")], [out("a"), cut(118)], id="a large display"),
        pytest.param(
            [stream("x" * 101), CLEAR, stream("y" * 100)], [out("y" * 100)], id="clear makes room"
        ),
        pytest.param(
            [display("x" * 60, "i"), display("y" * 60, "i", update=True)],
            [as_output("y" * 60)],
            id="an update has the room of what it replaces",
        ),
        pytest.param(
            [stream("a"), ("agentdouble_dropped", {"bytes": 10**8})],
            [out("a"), cut(10**8)],
            id="what a kernel has dropped is counted",
        ),
        pytest.param(
            [stream("x" * 60), CLEAR_BEFORE_NEXT, stream("y" * 101)],
            [out("y" * 100), cut(1)],
            id="the next after a clear is cut and says so",
        ),
    ],
)
def test_outputs_are_cut_at_the_limit(messages: list[Any], expected: list[CellOutput]) -> None:
    """The last output gives the dropped size."""
    assert tuple(expected) == collected(*messages)


def test_an_error_is_kept_beyond_the_limit() -> None:
    """Only the error's own text is cut."""
    error = ("error", {"ename": "E", "evalue": "v" * 90, "traceback": ["t" * 20, "u" * 20]})

    outputs = collected(stream("x" * 200), error)

    assert (
        out("x" * 100),
        CellOutput("error", ename="E", evalue="v" * 90, traceback=("t" * 10, "")),
        cut(130),
    ) == outputs


def test_an_error_missing_from_messages_comes_from_the_reply() -> None:
    """SBX-06: a failed execution has its error among the outputs exactly once."""
    collector = OutputCollector(LIMIT)
    reply = {"status": "error", "ename": "E", "evalue": "v", "traceback": ["t"]}

    collector.add_missing_error(reply)
    collector.add_missing_error(reply)

    assert (CellOutput("error", ename="E", evalue="v", traceback=("t",)),) == collector.outputs()


def outputs(double: Emulator, code: str) -> list[dict[str, Any]]:
    inner = run(double, code, "outputs")
    outputs: list[dict[str, Any]] = inner["data"]["outputs"]
    return outputs


@pytest.mark.slow
def test_a_plot_is_a_png(shared: Emulator) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"

    (figure,) = outputs(shared, code)

    png = base64.b64decode(figure["data"]["image/png"])
    width, height = struct.unpack(">II", png[16:24])
    assert output("display_data", data=figure["data"], metadata=figure["metadata"]) == figure
    assert b"\x89PNG\r\n\x1a\n" == png[:8]
    assert min(width, height) > 100


def test_displays_are_updated_and_outputs_cleared(shared: Emulator) -> None:
    """update_display_data and clear_output(wait=True) work as in a notebook."""
    code = """
from IPython.display import HTML, clear_output, display
print("gone")
clear_output(wait=True)
handle = display(HTML("<b>1</b>"), display_id=True)
handle.update(HTML("<b>2</b>"))
"""

    assert [
        output(
            "display_data",
            data={
                "text/plain": "<IPython.core.display.HTML object>",
                "text/html": "<b>2</b>",
            },
        )
    ] == outputs(shared, code)


def test_output_over_the_cap_is_marked(shared: Emulator) -> None:
    limit = 1024 * 1024

    stdout, mark = outputs(shared, f"print('x' * {limit + 1_000_000}, end='')")

    assert output("stream", name="stdout", text="x" * limit) == stdout
    assert (
        output(
            "stream",
            name="stderr",
            text="[output cut: the limit is 1048576 bytes, and at least 1000000 bytes more were "
            "dropped]\n",
        )
        == mark
    )


def test_a_long_error_message_is_cut(shared: Emulator) -> None:
    """No error makes the answer exceed the limit."""
    error, mark = outputs(shared, "raise ValueError('x' * 3_000_000)")

    length = len(error["evalue"]) + sum(map(len, error["traceback"]))
    assert ("ValueError", 1024 * 1024) == (error["ename"], length)
    assert "output cut" in mark["text"]


LARGE = 100_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("publish({'text/plain': large})", []),
        ("large", []),
        ("publish({}, metadata={'m': large})", []),
        (
            """
for text in ("a", large):
    publish({"text/plain": text}, transient={"display_id": "i"}, update=text is large)
""",
            ["display_data"],
        ),
        ("raise ValueError(large)", ["error"]),
        ("raise type(large, (Exception,), {})", ["error"]),
    ],
    ids=["a display", "a result", "metadata", "an update", "an error", "a name"],
)
def test_a_very_large_output_is_dropped_and_marked(
    shared: Emulator, code: str, expected: list[str]
) -> None:
    """The mark gives its size and is small itself."""
    text(shared, f"publish, large = get_ipython().display_pub.publish, 'x' * {LARGE}", "large")

    inner = run(shared, code, "large")

    *others, mark = inner["data"]["outputs"]
    assert expected == [output["output_type"] for output in others]
    dropped = re.search(r"at least (\d+) bytes more", mark["text"])
    assert dropped is not None
    assert LARGE <= int(dropped[1])
    assert len(json.dumps(inner)) < 3 * 1024 * 1024
    assert "on\n" == text(shared, "print('on')", "large")


def test_invalid_unicode_in_output_is_escaped(shared: Emulator) -> None:
    """A lone surrogate does not lose the text around it."""
    assert [output("stream", name="stdout", text="a\\ud800b\n")] == outputs(
        shared, "print('a\\ud800b')"
    )


def test_output_of_child_processes_is_captured(shared: Emulator) -> None:
    (stdout,) = outputs(shared, "!echo from the shell")

    assert "from the shell\r\n" == stdout["text"]


def test_the_last_words_of_a_child_process_belong_to_its_cell(shared: Emulator) -> None:
    """A thread reads them from a pipe, and the cell waits until it has."""
    run(shared, "import os")

    outputs = [text(shared, f"_ = os.write(1, b'{n}\\n')") for n in range(300)]

    assert [f"{n}\n" for n in range(300)] == outputs
    assert "€" * 1000 == text(
        shared, "for byte in ('€' * 1000).encode(): os.write(1, bytes([byte]))"
    )


PYTHON = """
import sys
from IPython.display import display

sys.setrecursionlimit(10**6)
value = []
for _ in range({depth}):
    value = [value]
display({{"application/json": value}}, raw=True)
print("after")
"""
JAVASCRIPT = """
let value = [];
for (let i = 0; i < {depth}; i++) value = [value];
const shown = {{[Symbol.for("Jupyter.display")]: () => ({{"application/json": value}})}};
await display(shown);
console.log("after");
shown
"""


@pytest.mark.parametrize(("language", "code"), [("python3", PYTHON), ("javascript", JAVASCRIPT)])
@pytest.mark.parametrize("depth", [985, 3000])  # versions of Python read and write others of them
def test_a_deeply_nested_output_holds_no_cell(
    shared: Emulator, language: str, code: str, depth: int
) -> None:
    """It is shown, or replaced by a text; the next cell runs in the same kernel."""
    began = run(shared, code.format(depth=depth), "deep", language=language)
    after = run(shared, "1 + 1", "deep", language=language)

    texts = {output["name"]: output["text"] for output in began["data"]["outputs"]}
    displays = [output["data"] for output in began["data"]["outputs"] if output["data"]]
    assert ("ok", "after\n") == (began["data"]["status"], texts["stdout"])
    assert displays or "is nested too deeply to be shown" in texts["stderr"]
    assert "2" == after["data"]["outputs"][0]["data"]["text/plain"]
    assert began["data"]["execution_count"] + 1 == after["data"]["execution_count"]


def test_an_output_that_cannot_be_read_is_replaced(shared: Emulator) -> None:
    """No version of Python reads this depth."""
    message = (
        "kernel = get_ipython().kernel; session = kernel.session\n"
        "header = session.msg_header('display_data')\n"
        "parts = [session.pack(p) for p in (header, kernel.get_parent()['header'], {})]\n"
        "begin, end = b'{\"data\": {\"application/json\": ' + b'[' * 200_000, b']' * 200_000 + b'}}'\n"
        "parts.append(begin + end)\n"
        "parts = [b'x', b'<IDS|MSG>', session.sign(parts), *parts]\n"
        "kernel.iopub_socket.send_multipart(parts); print('after')"
    )

    outputs = run(shared, message, "deep")["data"]["outputs"]

    assert [("stderr", TOO_DEEP), ("stdout", "after\n")] == [
        (output["name"], output["text"]) for output in outputs
    ]
