"""A2A over gRPC: the same application, the same callers, the same limits as over HTTP."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from a2a.client import ClientCallContext, ClientConfig, create_client
from a2a.server.tasks import TaskStore
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    Task,
    TaskState,
)
from google.protobuf.json_format import ParseDict

from agentdouble import A2AApp, Emulator, agent_card
from agentdouble.apps.a2a.grpc_listener import GrpcBinding
from agentdouble.errors import AddressInUseError, CardError, MissingExtraError, NotBuiltError
from tests import ports
from tests.agentdouble.apps.a2a.protocol.ordinary import ordinary
from tests.agentdouble.apps.a2a.protocol.receiver import Receiver, receiving
from tests.agentdouble.apps.a2a.test_guarding_executor import SECRET, for_ever, playing, raises
from tests.agentdouble.apps.a2a.wire import heard, message
from tests.agentdouble.calling import eventually, http
from tests.real_clients.expected import OUTCOME, PUSHED
from tests.real_clients.programs.a2a_1 import converse_over

if importlib.util.find_spec("grpc") is None:
    why = "needs the extra grpc"
    if os.environ.get("CI"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why, allow_module_level=True)

import grpc
from a2a.types.a2a_pb2_grpc import A2AServiceStub

pytestmark = pytest.mark.libraries

WAIT_S = 60
BOUND_S = 120
ROOT = Path(__file__).parents[4]
V1 = ("a2a-version", "1.0")
ANN = ("authorization", "Bearer ann's key")
BOB = ("authorization", "bearer bob's key")
LIMIT = 64 * 1024
CARD = "/.well-known/agent-card.json"


class Caller:
    """Calls one address, with the metadata it was given."""

    def __init__(self, address: str | None, *metadata: tuple[str, str]) -> None:
        assert address is not None
        self._channel = grpc.insecure_channel(address)
        self._stub: Any = A2AServiceStub(self._channel)
        self._metadata = metadata

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def call(self, operation: str, request: Any, **more: Any) -> Any:
        """Return the answer, or the events of a stream."""
        method = getattr(self._stub, operation)
        return method(request, metadata=self._metadata, timeout=WAIT_S, **more)

    def send(self, text: str = "hello", **more: Any) -> Task:
        """Return the task that a message resulted in."""
        task: Task = self.call("SendMessage", said(text), **more).task
        return task

    def refusal(self, operation: str, request: Any, **more: Any) -> tuple[str, str]:
        """Return the code and the text of an error."""
        whole = list if operation == "SendStreamingMessage" else lambda answer: answer
        with pytest.raises(grpc.RpcError) as caught:
            whole(self.call(operation, request, **more))
        error: Any = caught.value
        return error.code().name, error.details()


def said(text: str = "hello", **more: Any) -> SendMessageRequest:
    return ParseDict(message(text, **more), SendMessageRequest())


def text_of(task: Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double whose application has two callers."""
    app = A2AApp("keyed", runner="echo", keys=("ann's key", "bob's key"))
    with Emulator(app, a2a_grpc_port=0, body_limit=LIMIT) as double:
        yield double


@pytest.fixture
def ann(double: Emulator) -> Iterator[Caller]:
    """A caller with a key."""
    with Caller(double.a2a_grpc, V1, ANN) as caller:
        yield caller


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of notifications."""
    with receiving() as made:
        yield made


def test_the_official_client_has_the_same_conversation(receiver: Receiver) -> None:
    """Messages, streams, input, cancelling, failing, resuming and notifications."""

    async def talk() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        app = ordinary()
        await app.listen_grpc(GrpcBinding(0))
        async with app.lifespan():  # notifications end with it
            found = await converse_over(app.card("http://localhost"), "GRPC", receiver.url)
            return found, await asyncio.to_thread(receiver.until, "completed")

    found, pushed = asyncio.run(asyncio.wait_for(talk(), BOUND_S))

    assert (OUTCOME, PUSHED) == (found, heard(pushed))


def test_a_made_card_says_where(double: Emulator) -> None:
    """In version 1.0 alone: the service of 0.3 is another one."""
    card = http.get(double.url + CARD, headers=dict([V1])).json()
    old = http.get(double.url + CARD, headers={"A2A-Version": "0.3"}).json()

    assert {
        "url": double.a2a_grpc,
        "protocolBinding": "GRPC",
        "protocolVersion": "1.0",
    } == card["supportedInterfaces"][-1]
    assert ["JSONRPC", "HTTP+JSON"] == [
        old["preferredTransport"],
        *(one["transport"] for one in old["additionalInterfaces"]),
    ]


def test_the_official_client_finds_grpc_in_the_card(double: Emulator) -> None:
    """Its channel takes the address as it stands there, without a scheme."""
    config = ClientConfig(
        streaming=False,
        supported_protocol_bindings=["GRPC"],
        grpc_channel_factory=grpc.aio.insecure_channel,
    )

    async def talk() -> str:
        client = await create_client(double.url, config)
        context = ClientCallContext(service_parameters={"authorization": ANN[1]})
        async with client:
            return str([one async for one in client.send_message(said(), context=context)])

    assert "TASK_STATE_COMPLETED" in asyncio.run(asyncio.wait_for(talk(), BOUND_S))


def test_a_made_card_can_leave_grpc_out() -> None:
    """For clients that refuse the address of another port; it is answered all the same."""
    with Emulator(ordinary(), a2a_grpc_port=0, a2a_grpc_in_card=False) as double:
        cards = [
            http.get(double.url + CARD, headers={"A2A-Version": version}).json()
            for version in ("1.0", "")
        ]
        with Caller(double.a2a_grpc, V1) as caller:
            task = caller.send()

    origins = {one["url"] for card in cards for one in card["supportedInterfaces"]}
    assert ({double.url}, TaskState.TASK_STATE_COMPLETED) == (origins, task.status.state)


@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize(
    "key",
    [(), (("authorization", "Bearer wrong"),), (("authorization", "Basic ann's key"),)],
    ids=["none", "wrong", "scheme"],
)
def test_a_call_without_a_key_is_refused(
    double: Emulator, key: tuple[tuple[str, str], ...], operation: str
) -> None:
    """Before its message is read, and it says what to send."""
    with Caller(double.a2a_grpc, V1, *key) as caller:
        assert (
            "UNAUTHENTICATED",
            "Send 'authorization: Bearer <key>' in the metadata.",
        ) == caller.refusal(operation, said("x" * 2 * LIMIT))


def test_a_callers_tasks_are_its_own_over_both(double: Emulator, ann: Caller) -> None:
    """Another key finds, lists and cancels none of them; HTTP has the same tasks."""
    task = ann.send()
    over_http = {"A2A-Version": "1.0", "Authorization": ANN[1]}

    assert (TaskState.TASK_STATE_COMPLETED, "hello") == (task.status.state, text_of(task))
    assert task == ann.call("GetTask", GetTaskRequest(id=task.id))
    assert task.id == http.get(f"{double.url}/tasks/{task.id}", headers=over_http).json()["id"]
    with Caller(double.a2a_grpc, V1, BOB) as bob:
        assert "NOT_FOUND" == bob.refusal("GetTask", GetTaskRequest(id=task.id))[0]
        assert "NOT_FOUND" == bob.refusal("CancelTask", CancelTaskRequest(id=task.id))[0]
        assert 0 == bob.call("ListTasks", ListTasksRequest()).total_size


def test_a_message_that_is_too_large_is_refused(ann: Caller) -> None:
    """The body limit is gRPC's too, and the connection goes on."""
    code, details = ann.refusal("SendMessage", said("x" * 2 * LIMIT))

    assert ("RESOURCE_EXHAUSTED", True) == (code, str(LIMIT) in details)
    assert "hello" == text_of(ann.send())


def test_a_compressed_message_is_refused(ann: Caller) -> None:
    """A few bytes could become more than the limit."""
    bomb = said("x" * 100 * LIMIT)

    assert "UNIMPLEMENTED" == ann.refusal("SendMessage", bomb, compression=grpc.Compression.Gzip)[0]


def test_a_message_that_is_nested_too_deeply_is_refused(ann: Caller) -> None:
    """Nobody's stack overflows."""
    request = said()
    value = request.message.metadata.fields["a"]
    for _ in range(300):
        value = value.list_value.values.add()

    for operation in ("SendMessage", "SendStreamingMessage"):
        assert "INVALID_ARGUMENT" == ann.refusal(operation, request)[0]
    assert "hello" == text_of(ann.send())


@pytest.mark.parametrize("version", [(), (("a2a-version", "0.3"),), (("a2a-version", "2.0"),)])
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_another_version_is_refused(
    double: Emulator, version: tuple[tuple[str, str], ...], operation: str
) -> None:
    """Without one it is 0.3, as over HTTP."""
    with Caller(double.a2a_grpc, ANN, *version) as caller:
        code, details = caller.refusal(operation, said())

    assert ("FAILED_PRECONDITION", True) == (code, "is not spoken" in details)


def test_an_operation_that_there_is_not_is_refused(double: Emulator) -> None:
    """To who has a key, and to others not even that is told."""
    codes = []
    with grpc.insecure_channel(double.a2a_grpc) as channel:
        for metadata in ((V1, ANN), (V1,)):
            call = channel.unary_unary("/lf.a2a.v1.A2AService/DropTables")
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", metadata=metadata, timeout=WAIT_S)
            codes.append(caught.value.code().name)

    assert ["UNIMPLEMENTED", "UNAUTHENTICATED"] == codes


def test_an_incomplete_card_is_refused(ann: Caller) -> None:
    """The protocol's rules for messages hold."""
    assert "INVALID_ARGUMENT" == ann.refusal("SendMessage", SendMessageRequest())[0]


def test_the_key_of_the_double_is_asked_for() -> None:
    """As on every surface."""
    with Emulator(A2AApp(runner="echo"), api_key="k", a2a_grpc_port=0) as double:
        for key in [(), (("authorization", "Bearer wrong"),)]:
            with Caller(double.a2a_grpc, V1, *key) as caller:
                assert "UNAUTHENTICATED" == caller.refusal("SendMessage", said())[0]
        for right in (("authorization", "Bearer k"), ("x-api-key", "k")):
            with Caller(double.a2a_grpc, V1, right) as caller:
                assert "hello" == text_of(caller.send())


def test_an_agent_s_code_runs_in_this_double() -> None:
    """run_code finds its host, and a reset is no end."""
    with Emulator(a2a_grpc_port=0, pool_size=0) as double, Caller(double.a2a_grpc, V1) as caller:
        assert "42" == text_of(caller.send("print(6 * 7)")).strip()
        double.reset()
        assert 0 == caller.call("ListTasks", ListTasksRequest()).total_size


class Raising(TaskStore):
    """A task store that fails."""

    async def save_task(self, task: Task) -> None:
        raise RuntimeError(SECRET)

    async def get_task(self, task_id: str) -> Task | None:
        raise RuntimeError(SECRET)

    async def delete_task(self, task_id: str) -> None:
        raise RuntimeError(SECRET)


class Unready(A2AApp):
    """An application that cannot be put to work."""

    async def started(self) -> Any:
        """Fail."""
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_an_application_that_cannot_start_is_an_error(operation: str) -> None:
    """Without the text of the exception."""
    with Emulator(Unready(), a2a_grpc_port=0) as double, Caller(double.a2a_grpc, V1) as caller:
        assert ("INTERNAL", "The application failed. Its log says why.") == caller.refusal(
            operation, said()
        )


@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_the_text_of_exceptions_stays_here(operation: str) -> None:
    """An executor's and a store's alike."""
    broken = A2AApp("broken", runner="echo")
    broken.task_store(Raising)
    with Emulator(broken, a2a_grpc_port=0) as double, Caller(double.a2a_grpc, V1) as caller:
        code, details = caller.refusal(operation, said())
    with (
        Emulator(playing(raises), a2a_grpc_port=0) as double,
        Caller(double.a2a_grpc, V1) as caller,
    ):
        task = caller.send()

    assert ("INTERNAL", False) == (code, SECRET in details)
    assert (TaskState.TASK_STATE_FAILED, False) == (task.status.state, SECRET in str(task))


def stop_amid_a_stream() -> None:
    gc.collect()
    process, threads = psutil.Process(), set(threading.enumerate())
    before = process.num_fds()
    with Emulator(playing(for_ever), a2a_grpc_port=0) as double:
        address = double.a2a_grpc
        with Caller(address, V1) as caller:
            events = caller.call("SendStreamingMessage", said())
            assert next(events).task.id
            double.stop()
            with pytest.raises(grpc.RpcError):
                list(events)
    del events, caller
    gc.collect()

    assert address is not None
    assert double.a2a_grpc is None
    host, _, port = address.rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    # the client's own threads, gRPC's, end and close their descriptors by themselves
    eventually(
        lambda: (set(threading.enumerate()) - threads, process.num_fds()),
        lambda left: left == (set(), before),
    )


def test_a_double_that_stops_leaves_nothing() -> None:
    """Not its port, nor a thread or a descriptor; a stream that is open ends."""
    code = f"from {__name__} import stop_amid_a_stream; stop_amid_a_stream()"  # nobody else's
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, cwd=ROOT
    )

    assert 0 == done.returncode, done.stderr


def test_a_port_that_is_taken_is_named() -> None:
    """And the double does not start without it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        double = Emulator(A2AApp(runner="echo"), a2a_grpc_port=port)
        with pytest.raises(AddressInUseError, match=f"Port {port} .*--a2a-grpc-port 0"):
            double.start()


def promising(address: str, version: str = "1.0") -> Any:
    card = agent_card("promising", "http://127.0.0.1:8000", grpc=address)
    card.supported_interfaces[-1].protocol_version = version
    return card


@pytest.mark.parametrize(
    ("address", "version"),
    [
        ("127.0.0.1:1", "1.0"),
        ("example.com:{port}", "1.0"),
        ("127.0.0.1:{port}", "0.3"),
        ("{port}", "1.0"),
    ],
    ids=["port", "host", "version", "none"],
)
def test_a_card_that_promises_another_address_is_refused(address: str, version: str) -> None:
    """It would send callers to somebody else; no port stays open."""
    with ports.held() as port:
        card = promising(address.format(port=port), version)
        double = Emulator(A2AApp(runner="echo", card=card), a2a_grpc_port=port)

        with pytest.raises(CardError, match=f"and it answers at 127.0.0.1:{port}, version 1.0"):
            double.start()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_a_card_that_promises_what_is_not_served_is_refused() -> None:
    """In a double, where it is run, and for an application below the first."""
    card = promising("127.0.0.1:50051")
    first = A2AApp("first", runner="echo")
    with pytest.raises(CardError, match="and it answers nowhere"):
        Emulator(A2AApp(runner="echo", card=card)).start()
    with pytest.raises(CardError, match="and it answers nowhere"):
        Emulator(first, A2AApp("b", runner="echo", card=card), a2a_grpc_port=0).start()
    with pytest.raises(CardError, match="and it answers nowhere"):
        A2AApp(runner="echo").run(card, "127.0.0.1", 0)


def test_a_card_that_promises_the_right_address_is_served() -> None:
    """By another of the machine's own names too."""
    with ports.held() as port:
        app = A2AApp(runner="echo", card=promising(f"localhost:{port}"))
        with Emulator(app, a2a_grpc_port=port) as double:
            served = http.get(double.url + CARD, headers=dict([V1])).json()
            with Caller(served["supportedInterfaces"][-1]["url"], V1) as caller:
                assert "hello" == text_of(caller.send())


def test_version_0_3_alone_is_refused_by_name() -> None:
    """Its service is not built."""
    double = Emulator(a2a_grpc_port=0, unknowns={"U-A2A-TASK": "0.3"})

    with pytest.raises(NotBuiltError, match=r"A2A over gRPC in version 0\.3"):
        double.start()


def test_without_grpcio_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, as for every extra."""
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda *n: None if n[0] == "grpc" else find(*n)
    )

    with pytest.raises(MissingExtraError, match=r"pip install 'agentdouble\[grpc\]'"):
        Emulator(a2a_grpc_port=0).start()


SCRIPT = """
from agentdouble import A2AApp, agent_card
app = A2AApp("alone", runner="echo")
app.run(agent_card(app, "http://127.0.0.1:8000"), "127.0.0.1", 0, grpc_port=0)
"""


def test_run_serves_both_until_it_is_told(tmp_path: Path) -> None:
    """An application alone."""
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        try:
            assert running.stdout is not None
            line = running.stdout.readline()
            with Caller(line.split()[-1], V1) as caller:
                found = text_of(caller.send())
            running.send_signal(signal.SIGINT)
            ended = running.wait(WAIT_S)
        finally:
            running.kill()

    assert ("hello", 0) == (found, ended)


def test_a_call_is_in_the_journal(double: Emulator, ann: Caller) -> None:
    """With its time, its bytes and its status; the key is hidden. So is one that is refused."""
    http.delete(f"{double.url}/_emulator/journal")
    ann.send("hello")
    list(ann.call("SendStreamingMessage", said("again")))
    ann.refusal("GetTask", GetTaskRequest(id="none"))
    with Caller(double.a2a_grpc, V1) as nobody:
        nobody.refusal("GetTask", GetTaskRequest(id="none"))

    found = http.get(f"{double.url}/_emulator/journal", params={"bodies": "true"}).json()["entries"]

    where = f"grpc://{double.a2a_grpc}/lf.a2a.v1.A2AService/"
    names = [entry["url"].removeprefix(where) for entry in found]
    assert ["SendMessage", "SendStreamingMessage", "GetTask", "GetTask"] == names
    codes = [entry["response_headers"]["grpc-status"] for entry in found]
    assert ["0", "0", "5", "16"] == codes
    assert all(entry["duration_ms"] >= 0 and entry["status"] == 200 for entry in found)
    assert [True, True, False, False] == [entry["sent_bytes"] > 0 for entry in found]
    assert [True, True, True, False] == [entry["received_bytes"] > 0 for entry in found]
    assert "ann's key" not in str(found)
