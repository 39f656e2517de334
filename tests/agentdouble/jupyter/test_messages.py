"""Each message of Jupyter's protocol, to the kernel of a session and to a stock ipykernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import IPython
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import background, text
from tests.agentdouble.jupyter.notebook_client import JupyterClient, Notebook
from tests.agentdouble.jupyter.stock_kernel import stock_kernel

ECHO = """
from comm import get_comm_manager
def opened(comm, message):
    comm.on_msg(lambda it: comm.send({'again': it['content']['data']}))
    comm.on_close(lambda it: print('closed'))
get_comm_manager().register_target('echo', opened)
"""
CELLS = (
    "a = 1",
    "b = 'two'\nb",
    "a?",
    "%config InteractiveShell.xmode = 'Minimal'",
    ECHO,
    "a + 1",
)
OF_ONE_KERNEL = {
    "engine_uuid", "pid", "kernel_cpu", "kernel_memory", "host_virtual_memory", "subshell_id",
}  # fmt: skip
NOT_ALWAYS = "host_cpu_percent"  # the first answer of a kernel may not have it
TIP = re.compile(r"Tip: .*", re.DOTALL)  # chosen at random


def history(kind: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    content = {"hist_access_type": kind, "output": False, "raw": True, **fields}
    return "history_request", content


def cell(code: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "execute_request", {"code": code, "silent": False, "stop_on_error": False, **fields}


def comm(kind: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return f"comm_{kind}", {"comm_id": "c", "data": {}, **fields}


SHELL = (
    cell("print(a); b"),
    cell("1/0"),
    cell("1 1"),
    cell(""),
    cell("3", silent=True),
    cell("4", store_history=False, user_expressions={"good": "a", "bad": "1/0"}),
    cell("input()", allow_stdin=False),
    cell("import sys; print(2, file=sys.stderr)"),
    cell("from IPython.display import *; clear_output(); display(HTML('<b>'), display_id='d')"),
    cell("%%html\n<i>"),
    history("tail", n=3),
    history("tail", n=1000),
    history("tail", n=0),
    history("tail"),
    history("tail", n=2, raw=False, output=True),
    history("range", session=0, start=1, stop=3),
    history("range", session=0, output=True, raw=False),
    history("range", session=0, start=-2),
    history("range", session=1, start=2),
    history("range", session=-1),
    history("range", session=7),
    history("search", pattern="*a*", n=2),
    history("search", pattern="[ab] = *", unique=True),
    history("search", pattern="*", unique=True, n=3, output=True),
    history("search", pattern="%*", raw=False),
    history("search"),
    history("other"),
    ("history_request", {"hist_access_type": "tail"}),  # incomplete
    ("inspect_request", {"code": "b", "cursor_pos": 1, "detail_level": 0}),
    ("inspect_request", {"code": "len(", "cursor_pos": 4, "detail_level": 1}),
    ("inspect_request", {"code": "none_such", "cursor_pos": 1}),
    ("complete_request", {"code": "%hist", "cursor_pos": 5}),
    ("is_complete_request", {"code": "for i in x:"}),
    ("is_complete_request", {"code": "1"}),
    ("is_complete_request", {"code": "1 1"}),
    comm("open", target_name="echo"),
    comm("msg", data={"x": [1]}),
    ("comm_info_request", {}),
    ("comm_info_request", {"target_name": "none"}),
    comm("close"),
    comm("open", target_name="none"),
    comm("msg", comm_id="none"),
    ("kernel_info_request", {}),
    ("connect_request", {}),
    ("usage_request", {}),  # for the control channel
    ("create_subshell_request", {}),
    ("nonsense_request", {}),
)
CONTROL = (
    history("tail", n=3),
    ("inspect_request", {"code": "b", "cursor_pos": 1, "detail_level": 0}),
    ("complete_request", {"code": "%hist", "cursor_pos": 5}),
    ("is_complete_request", {"code": "1"}),
    ("comm_info_request", {}),
    ("kernel_info_request", {}),
    ("connect_request", {}),
    ("interrupt_request", {}),
    ("usage_request", {}),
    ("list_subshell_request", {}),
    ("delete_subshell_request", {"subshell_id": "none"}),
    ("nonsense_request", {}),
)
CASES = [
    *(("shell", *message) for message in SHELL),
    *(("control", *message) for message in CONTROL),
]


@pytest.fixture(scope="module")
def kernel() -> Iterator[Notebook]:
    """A client of the kernel of a session, in which ``CELLS`` have run."""
    with Emulator() as double:
        jupyter = JupyterClient(double)
        with jupyter.http, jupyter.attached(jupyter.new_kernel(), v1=True) as notebook:
            yield prepared(notebook)


@pytest.fixture(scope="module")
def stock() -> Iterator[Notebook]:
    """A client of a stock kernel, in which they have also run."""
    if IPython.version_info[0] < 9:
        pytest.skip("IPython 8 writes the history of a stock kernel late")
    with stock_kernel() as notebook:
        yield prepared(notebook)


def prepared(notebook: Notebook) -> Notebook:
    for code in CELLS:
        notebook.run(code)
    return notebook


def exchange(
    notebook: Notebook, kind: str, content: Mapping[str, Any], channel: str = "shell", **header: str
) -> dict[str, list[Any]]:
    """Return what a message causes, by channel.

    Not every message has a reply: another request on the same channel shows when none comes.
    """
    request = notebook.send(kind, content, channel, **header)
    end = notebook.send("kernel_info_request", {}, channel, **header)
    caused: dict[str, list[Any]] = {channel: [], "iopub": []}
    awaited = {(request, "status"), (end, "status"), (end, "kernel_info_reply")}
    while awaited:
        message = notebook.receive()
        parent, kind = message["parent_header"].get("msg_id"), message["header"]["msg_type"]
        if parent == request:
            caused[message["channel"]].append([kind, comparable(message["content"])])
        if kind != "status" or message["content"]["execution_state"] == "idle":
            awaited.discard((parent, kind))
    return caused


def comparable(value: Any) -> Any:
    """Return content without what differs between any two kernels."""
    if isinstance(value, Mapping):
        return {
            name: type(item).__name__ if name in OF_ONE_KERNEL else comparable(item)
            for name, item in value.items()
            if name != NOT_ALWAYS
        }
    if isinstance(value, (list, tuple)):
        return [comparable(item) for item in value]
    return TIP.sub("", value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("channel", "kind", "content"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}-{json.dumps(case[2])[:60]}") for case in CASES],
)
def test_a_message_is_answered_as_by_a_stock_kernel(
    kernel: Notebook, stock: Notebook, channel: str, kind: str, content: Mapping[str, Any]
) -> None:
    expected, actual = (exchange(it, kind, content, channel) for it in (stock, kernel))
    if kind == "kernel_info_request":  # the one difference is documented
        expected[channel][0][1]["supported_features"].remove("debugger")

    assert expected == actual


def test_a_completion_without_jedi_leads_to_the_same_text(
    kernel: Notebook, stock: Notebook
) -> None:
    """A stock kernel has it from jedi, which would read all of Python's stubs first."""
    for channel in ("shell", "control"):
        request = ("complete_request", {"code": "b.upp", "cursor_pos": 5}, channel)
        replies = [exchange(it, *request)[channel][0][1] for it in (stock, kernel)]

        assert ["b.upper", "b.upper"] == [
            f"{'b.upp'[: reply['cursor_start']]}{reply['matches'][0]}" for reply in replies
        ]


def test_a_debugger_is_refused_by_name(kernel: Notebook) -> None:
    """JupyterLab offers none, because the kernel does not list it among its features."""
    request = {"type": "request", "seq": 7, "command": "debugInfo", "arguments": {}}

    ((kind, reply),) = exchange(kernel, "debug_request", request, "control")["control"]

    assert "debug_reply" == kind
    assert (False, 7, "debugInfo") == (reply["success"], reply["request_seq"], reply["command"])
    assert "have no debugger. Use %debug" in reply["message"]


def test_debug_after_an_error(double: Emulator) -> None:
    """IPython's own debugger works, by questions and answers."""
    jupyter = JupyterClient(double)
    with jupyter.http, jupyter.attached(jupyter.new_kernel()) as notebook:
        notebook.run("def half(n): return n / 0\nhalf(7)")
        request = notebook.execute("%debug")
        assert "ipdb> " == notebook.wait_for("input_request")["content"]["prompt"]
        notebook.send("input_reply", {"value": "p n"}, "stdin")
        shown, asked = False, False
        while not (shown and asked):  # they come on channels of their own, in either order
            message = notebook.receive()
            asked |= message["header"]["msg_type"] == "input_request"
            shown |= "7" in str(message["content"].get("text"))
        notebook.send("input_reply", {"value": "quit"}, "stdin")
        notebook.until_idle(request)


def test_a_javascript_kernel_answers_each_request(double: Emulator) -> None:
    """It has no history, no debugger and no subshells, as Deno's own kernel, and says which."""
    jupyter = JupyterClient(double)
    text(double, "globalThis.x = 1", "agent", language="javascript")
    with jupyter.http, jupyter.attached(jupyter.kernel_of("agent")) as notebook:
        info = exchange(notebook, "kernel_info_request", {})["shell"][0][1]
        debug = exchange(notebook, "debug_request", {"seq": 1}, "control")["control"][0][1]
        past = exchange(notebook, *history("tail", n=3))["shell"][0][1]
        usage = exchange(notebook, "usage_request", {}, "control")["control"][0][1]
        for request in (
            ("inspect_request", {"code": "x", "cursor_pos": 1}),
            ("comm_info_request", {}),
        ):
            assert "ok" == exchange(notebook, *request)["shell"][0][1]["status"]

    assert "javascript" == info["language_info"]["name"]
    assert not {"debugger", "kernel subshells"} & {*info["supported_features"]}
    assert (False, []) == (debug["success"], past["history"])
    assert "kernel_memory" in usage


def test_the_shell_channel_survives_an_interrupt(kernel: Notebook, stock: Notebook) -> None:
    """A stock kernel interrupts the answer too, so that it sends none."""
    stocks, ours = (exchange(it, "interrupt_request", {})["shell"] for it in (stock, kernel))

    assert [[], [["interrupt_reply", {"status": "ok"}]]] == [stocks, ours]


def test_input_is_asked_for_and_read(kernel: Notebook, stock: Notebook) -> None:
    seen = []
    for notebook in (stock, kernel):
        request = notebook.execute("import getpass; print(input('? '), getpass.getpass('! '))")
        prompts = []
        for value in ("ann", "secret"):
            prompts.append(notebook.wait_for("input_request")["content"])
            notebook.send("input_reply", {"value": value}, "stdin")
        outputs = notebook.until_idle(request)
        streams = [m["content"] for m in outputs if m["header"]["msg_type"] == "stream"]
        seen.append([prompts, streams])

    assert seen[0] == seen[1]
    assert "ann secret\n" == seen[1][1][0]["text"]


def test_a_subshell_runs_code_while_a_cell_runs(kernel: Notebook, stock: Notebook) -> None:
    seen = []
    for notebook in (stock, kernel):
        notebook.send("create_subshell_request", {}, "control")
        created = notebook.wait_for("create_subshell_reply")["content"]
        beside = {"subshell_id": created["subshell_id"]}
        cell_ = notebook.execute("input()")
        notebook.wait_for("input_request")
        requests = (
            cell("side = a + 1; print(side)"),
            cell("1/0"),
            cell("import asyncio; await asyncio.sleep(0); side"),
            ("complete_request", {"code": "%hist", "cursor_pos": 5}),
            ("inspect_request", {"code": "a", "cursor_pos": 1}),
        )
        answers = [exchange(notebook, *request, **beside) for request in requests]
        notebook.send("input_reply", {"value": ""}, "stdin")
        notebook.until_idle(cell_)
        ends = [
            exchange(notebook, f"{verb}_subshell_request", beside, "control")
            for verb in ("list", "delete", "delete")
        ]
        seen.append([*answers, *ends[:2], notebook.text("print(side)")])
        assert "Unknown subshell_id" in ends[2]["control"][0][1]["evalue"]

    assert seen[0] == seen[1]


def test_a_subshell_runs_code_while_an_agent_does(double: Emulator) -> None:
    """And its code can still be interrupted."""
    jupyter = JupyterClient(double)
    text(double, "a = 1", "agent")
    with jupyter.http, jupyter.attached(jupyter.kernel_of("agent")) as notebook:
        notebook.send("create_subshell_request", {}, "control")
        created = notebook.wait_for("create_subshell_reply")["content"]
        code = "print('on', flush=True)\nwhile a == 1: pass\nprint(a)"
        waiting = background(lambda: text(double, code, "agent"))
        notebook.wait_for("stream")

        beside, request = {"subshell_id": created["subshell_id"]}, "execute_request"
        caused = exchange(notebook, request, {"code": "print(a); a = 2"}, **beside)

        assert "1\n" == dict(caused["iopub"])["stream"]["text"]
        assert "on\n2\n" == waiting.result(60)


def test_a_reset_shell_begins_a_history(kernel: Notebook, stock: Notebook) -> None:
    """The inputs before are kept, as those of another session."""
    seen = []
    for notebook in (stock, kernel):
        notebook.run("get_ipython().reset()")
        notebook.run("after = 1")
        requests = (history("tail", n=4), history("range", session=-1), history("range"))
        seen.append([exchange(notebook, *request) for request in requests])
        seen[-1].append(notebook.text("%history -g after*"))

    assert seen[0] == seen[1]
    assert [2, 1, "after = 1"] == seen[1][0]["shell"][0][1]["history"][-1]


def test_shutdown_is_answered(double: Emulator) -> None:
    """A kernel of Jupyter's own obeys; those of agents refuse, see ``test_kernels``."""
    jupyter = JupyterClient(double)
    with (
        jupyter.http,
        stock_kernel() as stock,
        jupyter.attached(jupyter.new_kernel()) as notebook,
    ):
        replies = []
        for it in (stock, notebook):
            it.send("shutdown_request", {"restart": False}, "control")
            replies.append(it.wait_for("shutdown_reply")["content"])

    assert replies[0] == replies[1]
