"""Sessions of the sandbox as kernels of a Jupyter server."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from agentdouble.sandbox.result import TOO_DEEP
from tests.agentdouble.calling import act, background, eventually, home_of, run, text
from tests.agentdouble.jupyter.notebook_client import JupyterClient, Message, packed
from tests.agentdouble.jupyter.notebook_client import error as error_in
from tests.agentdouble.jupyter.notebook_client import text as text_in

pytestmark = pytest.mark.smoke


@pytest.fixture
def jupyter(double: Emulator) -> Iterator[JupyterClient]:
    """A client of the Jupyter server of a double."""
    client = JupyterClient(double)
    yield client
    client.http.close()


def test_api_has_a_version_and_the_languages(jupyter: JupyterClient) -> None:
    specs = jupyter.http.get("/kernelspecs").json()

    assert {"version"} == httpx.get(
        f"{jupyter.http.base_url}".rstrip("/"), headers=jupyter.http.headers
    ).json().keys()
    assert "python3" == specs["default"]
    assert ["python3", "javascript"] == [*specs["kernelspecs"]]
    assert specs["kernelspecs"]["python3"] == jupyter.http.get("/kernelspecs/python3").json()
    assert 404 == jupyter.http.get("/kernelspecs/cobol").status_code


def test_a_notebook_shares_the_kernel_of_an_agent(double: Emulator, jupyter: JupyterClient) -> None:
    """The kernel is listed under the session's names, and each sees the other's variables."""
    run(double, "x = 41", "agent")
    kernel = jupyter.kernel_of("agent")

    with jupyter.attached(kernel) as first, jupyter.attached(kernel, v1=True) as second:
        assert "41\n" == first.text("print(x)")
        assert "42\n" == second.text("x += 1; print(x)")
        listed = jupyter.http.get(f"/kernels/{kernel}").json()

    assert "42\n" == text(double, "print(x)", "agent")
    assert ("t-sandbox", 2) == (listed["tool_id"], listed["connections"])


def test_outputs_are_rich_and_reach_every_client(jupyter: JupyterClient) -> None:
    kernel = jupyter.new_kernel()

    with jupyter.attached(kernel) as first, jupyter.attached(kernel) as second:
        request = first.execute("from IPython.display import HTML; display(HTML('<b>x</b>')); 7")
        seen = second.wait_for("display_data"), second.wait_for("execute_result")
        messages = first.until_idle(request)

    assert ["<b>x</b>", "7"] == [
        message["content"]["data"].get("text/html") or message["content"]["data"]["text/plain"]
        for message in seen
    ]
    assert request == seen[0]["parent_header"]["msg_id"]
    # The reply may come before them: channels have no common order.
    outputs = [message for message in messages if message["channel"] == "iopub"]
    kinds = [message["header"]["msg_type"] for message in outputs]
    assert ["status", "execute_input", "display_data", "execute_result", "status"] == kinds


def test_code_can_read_input(jupyter: JupyterClient) -> None:
    with jupyter.attached(jupyter.new_kernel()) as notebook:
        request = notebook.execute("print('hello', input('name? '))")
        prompt = notebook.wait_for("input_request")
        notebook.send("input_reply", {"value": "ann"}, "stdin")

        assert "name? " == prompt["content"]["prompt"]
        assert "hello ann\n" == text_in(notebook.until_idle(request))


@pytest.mark.parametrize("v1", [True, False])
def test_comms_carry_buffers(jupyter: JupyterClient, v1: bool) -> None:
    """As widgets do; the answer of the kernel's handler comes back."""
    code = (
        "from comm import get_comm_manager\n"
        "def opened(comm, _message):\n"
        "    comm.send({'pong': 1}, buffers=[b'12', b'345'])\n"
        "get_comm_manager().register_target('ping', opened)"
    )
    with jupyter.attached(jupyter.new_kernel(), v1=v1) as notebook:
        notebook.run(code)
        notebook.send("comm_open", {"comm_id": "c", "target_name": "ping", "data": {}})
        if v1:
            answer = notebook.wait_for("comm_msg")
            assert [b"12", b"345"] == answer["buffers"]
            return
        data = notebook._socket.recv(60)
        while isinstance(data, str):
            data = notebook._socket.recv(60)

    offsets = [int.from_bytes(data[at : at + 4], "big") for at in range(4, 16, 4)]
    assert 3 == int.from_bytes(data[:4], "big")
    assert {"pong": 1} == json.loads(data[offsets[0] : offsets[1]])["content"]["data"]
    assert (b"12", b"345") == (data[offsets[1] : offsets[2]], data[offsets[2] :])


def test_interrupt_ends_the_code(jupyter: JupyterClient) -> None:
    kernel = jupyter.new_kernel()

    with jupyter.attached(kernel) as notebook:
        request = notebook.execute("print('on', flush=True)\nwhile True: pass")
        notebook.wait_for("stream")
        assert 204 == jupyter.http.post(f"/kernels/{kernel}/interrupt").status_code

        assert "KeyboardInterrupt" == error_in(notebook.until_idle(request))[0]
        assert "3\n" == notebook.text("print(3)")


def test_restart_replaces_the_kernel_of_all_clients(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """The session goes on, also for its agent, and code that ran gets an error."""
    run(double, "x = 1", "agent")
    kernel = jupyter.kernel_of("agent")

    with jupyter.attached(kernel) as first, jupyter.attached(kernel) as second:
        request = first.execute("print('on', flush=True)\nwhile True: pass")
        first.wait_for("stream")
        restarted = jupyter.http.post(f"/kernels/{kernel}/restart")

        assert (200, kernel) == (restarted.status_code, restarted.json()["id"])
        assert "KernelRestarted" == error_in(first.until_idle(request))[0]
        assert "NameError" == second.error("x")[0]
        assert "2\n" == first.text("y = 2; print(y)")
    assert "2\n" == text(double, "print(y)", "agent")


def test_expiry_is_said_in_the_cell_and_restart_makes_a_session(
    double: Emulator, jupyter: JupyterClient
) -> None:
    kernel = jupyter.new_kernel()

    with jupyter.attached(kernel) as notebook:
        notebook.run("x = 1")
        double.clock.move(dt.timedelta(minutes=31))
        name, message = notebook.error("x")
        dead = jupyter.http.get(f"/kernels/{kernel}").json()
        jupyter.http.post(f"/kernels/{kernel}/restart")

        assert "SandboxError" == name
        assert ": expired at " in message
        assert "Restart the kernel" in message
        assert "dead" == dead["execution_state"]
        assert "5\n" == notebook.text("print(5)")
    assert {kernel} == {listed["id"] for listed in jupyter.http.get("/kernels").json()}


def test_a_notebook_goes_on_when_its_session_wakes(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """Its client stays connected, and so does one that comes later."""
    run(double, "x = 41", "agent")
    kernel = jupyter.kernel_of("agent")

    with jupyter.attached(kernel) as notebook:
        assert "41\n" == notebook.text("print(x)")
        for count in (42, 43):
            double.clock.advance(minutes=31)
            fields = {"ToolId": double.tool_id, "SnapshotType": "Automatic"}
            (snapshot,) = act(double, "ListSessionSnapshots", **fields)["Snapshots"]
            ids = {"ToolId": double.tool_id, "SnapshotId": snapshot["SnapshotId"]}
            act(double, "ResumeSessionFromSnapshot", **ids)

            assert f"{count}\n" == notebook.text("x += 1; print(x)")
            with jupyter.attached(jupyter.kernel_of("agent")) as later:
                assert f"{count}\n" == later.text("print(x)")


def test_a_kernel_that_dies_answers_its_cell(jupyter: JupyterClient) -> None:
    kernel = jupyter.new_kernel()

    with jupyter.attached(kernel) as notebook:
        name, message = notebook.error("import os; os._exit(3)")

        assert "SessionEnded" == name
        assert "exited with code 3" in message
        assert "exited with code 3" in notebook.error("1")[1]
    status = eventually(
        lambda: jupyter.http.get(f"/kernels/{kernel}").status_code, lambda status: status != 200
    )
    assert 404 == status


def test_cells_after_an_exit_all_end(jupyter: JupyterClient) -> None:
    """A kernel that exits goes on for a moment, and may answer the last of them half."""
    with jupyter.attached(jupyter.new_kernel()) as notebook:
        notebook.run("exit")
        while "ok" == _status(notebook.run("1")):
            pass

        assert "exited with code 0" in notebook.error("1")[1]


def test_a_question_to_a_kernel_that_dies_is_answered(jupyter: JupyterClient) -> None:
    """Such as that of a completion, which waits for the code that runs."""
    with jupyter.attached(jupyter.new_kernel()) as notebook:
        notebook.execute("import os; input(); os._exit(3)")
        notebook.wait_for("input_request")
        question = notebook.send("complete_request", {"code": "a", "cursor_pos": 1})
        notebook.send("input_reply", {"value": ""}, "stdin")
        reply = notebook.wait_for("complete_reply")

        assert question == reply["parent_header"]["msg_id"]
        assert ("error", "SessionEnded") == (reply["content"]["status"], reply["content"]["ename"])


def _status(messages: list[Message]) -> str:
    """Return the status in a reply."""
    return next(m["content"]["status"] for m in messages if m["channel"] == "shell")


def test_a_message_that_the_kernel_would_ignore_holds_no_turn(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """A repeated message is answered with an error, and one without JSON ends the connection."""
    run(double, "x = 0", "agent")
    kernel = jupyter.kernel_of("agent")
    header = {"msg_id": "1", "msg_type": "execute_request", "session": "s", "version": "5.3"}
    message = {"header": header, "channel": "shell", "content": {"code": "x += 1"}}

    with jupyter.attached(kernel) as first, jupyter.attached(kernel) as second:
        first._socket.send(json.dumps(message))
        first.until_idle("1")
        second._socket.send(json.dumps(message))
        repeated = error_in(second.until_idle("1"))
    with jupyter.attached(kernel, v1=True) as notebook:
        parts = [json.dumps({**header, "msg_id": "2"}).encode(), b"{}", b"{}", b"{x}"]
        notebook._socket.send(packed("shell", parts))
        with pytest.raises(ConnectionClosedError, match="content of a message is not JSON"):
            notebook.drain()

    assert ("SandboxError", "This message was sent before") == (repeated[0], repeated[1][:28])
    assert "1\n" == text(double, "print(x)", "agent")


def test_an_agent_waits_for_the_code_of_a_notebook(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """Its timeout counts from its turn, and so does not interrupt the notebook."""
    run(double, "1", "agent")

    with jupyter.attached(jupyter.kernel_of("agent")) as notebook:
        request = notebook.execute("x = input()")
        notebook.wait_for("input_request")
        waiting = background(lambda: text(double, "print(x)", "agent", timeout_s=1))
        completed = notebook.send("kernel_info_request", {}, "control")
        notebook.wait_for("kernel_info_reply")
        assert not waiting.done()
        notebook.send("input_reply", {"value": "42"}, "stdin")
        notebook.until_idle(request)

    assert completed
    assert "42\n" == waiting.result(60)


def test_a_client_that_comes_back_gets_what_it_missed(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """No message is lost or repeated."""
    run(double, "1", "agent")
    kernel = jupyter.kernel_of("agent")
    code = (
        "import pathlib\n"
        "print('on', flush=True)\n"
        "while not pathlib.Path('go').exists(): pass\n"
        "for i in range(1000): display(i)"
    )
    with jupyter.attached(kernel) as other:
        with jupyter.attached(kernel, "lab-1") as notebook:
            request = notebook.execute(code)
            notebook.wait_for("stream")
        (home_of(double, "agent") / "go").touch()
        while other.wait_for("display_data")["content"]["data"]["text/plain"] != "999":
            pass

    with jupyter.attached(kernel, "lab-1", v1=True) as notebook:
        messages = notebook.until_idle(request)

    numbers = [
        m["content"]["data"]["text/plain"]
        for m in messages
        if m["header"]["msg_type"] == "display_data"
    ]
    assert [str(i) for i in range(1000)] == numbers


def test_wrong_tokens_are_refused(double: Emulator, jupyter: JupyterClient) -> None:
    kernel = jupyter.new_kernel()
    path = f"/api/kernels/{kernel}/channels"
    address = f"{double.url}/jupyter".replace("http", "ws", 1)
    for wrong in ("", "/token/wrong", "/token/"):
        assert 401 == httpx.get(f"{double.url}/jupyter{wrong}/api/kernels").status_code
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{address}{wrong}{path}?token=wrong", proxy=None)
        assert 401 == refused.value.response.status_code

    with connect(f"{address}{path}?token={double.token}", proxy=None):
        pass
    key = double.environment("jupyter")["JUPYTER_GATEWAY_AUTH_TOKEN"]
    httpx.get(f"{double.url}/jupyter/token/{key}/api")
    urls = [entry.url for entry in double.journal.entries()]
    assert not any(key in url or double.token in url for url in urls)


def test_unknown_kernels_and_messages_are_refused(jupyter: JupyterClient) -> None:
    kernel = jupyter.new_kernel()

    with pytest.raises(InvalidStatus) as refused, jupyter.attached("none"):
        pass
    with jupyter.attached(kernel) as notebook:
        notebook._socket.send('{"channel": "iopub"}')
        with pytest.raises(ConnectionClosedError, match=r"needs a channel \(shell, control, stdin"):
            notebook.drain()

    with jupyter.attached(kernel) as notebook:
        header = {"msg_id": "1", "msg_type": "execute_request"}
        parts = {"header": header, "parent_header": {}, "metadata": {}, "content": {}}
        notebook._socket.send(json.dumps({**parts, "channel": "shell"}))
        with pytest.raises(ConnectionClosedError, match=r"needs a header with msg_id, .*version"):
            notebook.drain()

    assert 404 == refused.value.response.status_code
    assert "its session may have expired" in str(refused.value.response.body)
    for method, path, status in (
        ("GET", "/kernels/none", 404),
        ("POST", f"/kernels/{kernel}/pause", 404),
        ("GET", "/contents", 404),
    ):
        answer = jupyter.http.request(method, path)
        assert (status, True) == (answer.status_code, "message" in answer.json())
    assert "cobol" in jupyter.http.post("/kernels", json={"name": "cobol"}).json()["message"]
    assert 400 == jupyter.http.post("/kernels", content=b"{").status_code


@pytest.mark.parametrize("v1", [True, False])
@pytest.mark.parametrize("channel", ["control", "shell"])
@pytest.mark.parametrize("kind", ["shutdown", "agentdouble_template"])
def test_no_message_ends_the_kernel_of_an_agent(
    double: Emulator, jupyter: JupyterClient, kind: str, channel: str, v1: bool
) -> None:
    """Nor makes a template of it; the refusal is what DELETE says."""
    run(double, "x = 1", "agent")

    with jupyter.attached(jupyter.kernel_of("agent"), v1=v1) as notebook:
        request = notebook.send(f"{kind}_request", {"restart": False}, channel)
        reply = notebook.wait_for(f"{kind}_reply")

    assert request == reply["parent_header"]["msg_id"]
    assert ("error", "OperationDenied") == (reply["content"]["status"], reply["content"]["ename"])
    assert kind == "agentdouble_template" or "DeleteSession" in reply["content"]["evalue"]
    assert "1\n" == text(double, "print(x)", "agent")


def test_a_message_ends_a_kernel_of_jupyter(jupyter: JupyterClient) -> None:
    kernel = jupyter.new_kernel()

    with jupyter.attached(kernel) as notebook:
        notebook.send("shutdown_request", {"restart": False}, "control")

        assert "ok" == notebook.wait_for("shutdown_reply")["content"]["status"]


NESTED = """
kernel = get_ipython().kernel
session = kernel.session
header = session.msg_header("display_data")
parts = [session.pack(part) for part in (header, kernel.get_parent()["header"], {})]
parts.append(b'{"data": {"application/json": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}")
kernel.iopub_socket.send_multipart([b"x", b"<IDS|MSG>", session.sign(parts), *parts])
print("after")
"""


def test_an_output_nested_too_deeply_keeps_the_connection(jupyter: JupyterClient) -> None:
    """It becomes a text in the protocol whose messages are JSON."""
    with jupyter.attached(jupyter.new_kernel(), v1=False) as notebook:
        messages = notebook.run(NESTED)

    outputs = [message for message in messages if message["channel"] == "iopub"]
    kinds = [message["header"]["msg_type"] for message in outputs]
    assert ["status", "execute_input", "stream", "stream", "status"] == kinds
    assert TOO_DEEP == outputs[2]["content"]["text"]


@pytest.mark.parametrize("content", [b"{x}", b"[" * 3000 + b"]" * 3000])
def test_code_that_signs_junk_keeps_the_connection(jupyter: JupyterClient, content: bytes) -> None:
    """The message is dropped."""
    junk = (
        f"kernel = get_ipython().kernel; parts = [b'{{}}', b'{{}}', b'{{}}', {content!r}]\n"
        "parts = [b'x', b'<IDS|MSG>', kernel.session.sign(parts), *parts]\n"
        "kernel.iopub_socket.send_multipart(parts); print('after')"
    )
    with jupyter.attached(jupyter.new_kernel(), v1=False) as notebook:
        assert "after\n" == text_in(notebook.run(junk))


def test_only_sessions_that_jupyter_made_are_deleted(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """Those of agents are left: JupyterLab deletes all kernels when it quits, until one fails."""
    run(double, "x = 1", "agent")
    agents, own = jupyter.kernel_of("agent"), jupyter.new_kernel()

    assert [204, 204] == [
        jupyter.http.delete(f"/kernels/{id_}").status_code for id_ in (agents, own)
    ]
    assert [agents] == [kernel["id"] for kernel in jupyter.http.get("/kernels").json()]
    assert "1\n" == text(double, "print(x)", "agent")
