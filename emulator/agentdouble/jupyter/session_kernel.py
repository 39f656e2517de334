"""The kernel of a sandbox session, as a Jupyter server has it: its clients, its code, its end."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from agentdouble.core.clock import Clock
from agentdouble.errors import AgentDoubleError, SandboxError
from agentdouble.jupyter.kernel_clients import KernelClient
from agentdouble.jupyter.kernelspecs import advice_for, spec_name
from agentdouble.jupyter.websocket_wire import ChannelMessage
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.kernel_channels import Message
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.sessions import SandboxSessions

DISCONNECTED = 8  # clients of a kernel that may come back
_REMEMBERED = 1000  # messages
_OF_THE_DOUBLE = "agentdouble_"  # begins requests that make templates of copies
_NAMESPACE = uuid.UUID("1b1f6f6e-5a0c-4b52-9a55-7f0f8d1c2a41")


def kernel_id(key: InstanceKey, language: str, session_id: str = "") -> str:
    """Return the id of the kernel of a user session, which its next session has again.

    ``session_id`` is that of a session beside an older one of the same user session.
    """
    place = f"{key.tool_id}/{key.user_session_id}/{language}"
    return str(uuid.uuid5(_NAMESPACE, f"{place}/{session_id}" if session_id else place))


class SessionKernel:
    """The kernel of one session for one language; its id stays when it is replaced.

    When its session ends, its clients are told why, and get an error for what they send afterwards,
    until it is restarted or its session wakes. ``is_own`` says whether Jupyter made a session.
    """

    def __init__(
        self,
        id_: str,
        session: SandboxSession,
        language: str,
        clock: Clock,
        sessions: SandboxSessions,
        is_own: Callable[[InstanceKey], bool],
    ) -> None:
        self.key = session.key
        self.id = id_
        self.language = language
        self.clients: list[KernelClient] = []
        self._clock = clock
        self._sessions = sessions
        self._is_own = is_own
        self._session = session
        self._kernel: Kernel | None = None
        self._state = "idle"
        self._last_activity = clock.now()
        self._running: set[str] = set()  # ids of requests whose code runs or waits
        self._signatures: deque[bytes] = deque(maxlen=_REMEMBERED)  # of code that was sent
        self._turn: asyncio.Future[None] | None = None  # done while the session's turn is held
        self._released = asyncio.Event()

    @property
    def session_id(self) -> str:
        """The id of its session."""
        return self._session.id

    @property
    def kernel(self) -> Kernel | None:
        """The living kernel, or None if its session has ended."""
        session: SandboxSession | None = self._session
        if self._session.end_reason is not None:
            session = self._sessions.by_id(self._session.id)  # it may live again, from its snapshot
        if session is None:
            return None
        newest = session.processes.kernels.get(self.language)
        if newest is not None:
            self.follow(session, newest)
        return newest

    def follow(self, session: SandboxSession, kernel: Kernel) -> None:
        """Use this kernel of the session from now on."""
        if kernel is self._kernel:
            return
        # The callback of the kernel before may still come; ``_on_death`` compares.
        if self._kernel is not None and self._on_iopub in self._kernel.listeners:
            self._kernel.listeners.remove(self._on_iopub)
        self._session, self._kernel, self._state = session, kernel, "idle"
        self._signatures.clear()
        kernel.listeners.append(self._on_iopub)
        kernel.left.add_done_callback(lambda _: self._on_death(kernel))

    def to_dict(self) -> dict[str, Any]:
        """Return Jupyter's model of the kernel, and the names of its session."""
        active = self._last_activity.astimezone(dt.timezone.utc)
        return {
            "id": self.id,
            "name": self.language if self._is_own(self.key) else spec_name(self.key, self.id),
            "last_activity": f"{active:%Y-%m-%dT%H:%M:%S.%fZ}",
            "execution_state": "dead" if self.kernel is None else self._state,
            "connections": sum(client.connected for client in self.clients),
            "reason": self._session.end_reason or "",
            "tool_id": self.key.tool_id,
            "user_session_id": self.key.user_session_id,
            "session_id": self._session.id,
        }

    async def client(self, session_id: str) -> KernelClient:
        """Return the client that had this session id, or a new one.

        Raises the errors of ``KernelClient.open``.
        """
        for client in self.clients:
            if session_id and client.session_id == session_id and not client.closed:
                return client
        client = KernelClient(session_id)
        try:
            if self.kernel is not None:
                await client.open(self.kernel)
        except BaseException:
            client.close()
            raise
        self.clients.append(client)
        client.sender = asyncio.ensure_future(self._send_code(client))
        return client

    async def _send_code(self, client: KernelClient) -> None:
        while True:
            await self.send(client, await client.code.get())

    def disconnected(self, client: KernelClient) -> None:
        """Let a client wait for its next connection if it can be recognized; close it otherwise."""
        client.connected = False
        waiting = [other for other in self.clients if not other.connected]
        for other in waiting[: max(0, len(waiting) - DISCONNECTED)]:
            other.close()
        if not client.session_id:
            client.close()
        self.clients = [other for other in self.clients if not other.closed]

    async def send(self, client: KernelClient, message: ChannelMessage) -> None:
        """Send a client's message; code waits for the session's turn, and gets its error.

        Code of a subshell waits for nothing: it runs beside other code.
        """
        header, kernel = message.header, self.kernel
        refusal = self._refusal(header["msg_type"])
        if refusal is not None:
            client.refuse(message, refusal)
            return
        if kernel is not None:
            await client.open(kernel)
        elif header["msg_type"] != "execute_request":
            self._answer_ended(client, message)
            return
        if header["msg_type"] != "execute_request" or message.channel != "shell":
            client.note_question(message)
            await client.send(message)
            return
        msg_id = header["msg_id"]
        client.note_request(msg_id, bytes(message.parts[0]))
        try:
            if kernel is not None:
                self._check_new(kernel.connection.session.sign([*message.parts[:4]]))
            if message.is_beside:
                self._use_living()
            else:
                await self._take_turn(msg_id)
            await client.send(message)
        except asyncio.CancelledError:
            self._finish(msg_id)
            raise
        except AgentDoubleError as error:
            self._finish(msg_id)
            client.answer_with_error(type(error).__name__, str(error), bytes(message.parts[0]))

    def _answer_ended(self, client: KernelClient, message: ChannelMessage) -> None:
        """Answer a message to a kernel that has ended; a restart can replace that of Jupyter."""
        if not self._is_own(self.key):
            client.tell_end(self.ended(), is_final=True)
        elif message.header["msg_type"].endswith("_request"):
            client.refuse(message, SandboxError(self.ended(), "InvalidResource.Ended", 409))

    def _refusal(self, kind: str) -> SandboxError | None:
        """Return why a kernel does not get messages of this type from clients."""
        if kind == "shutdown_request" and not self._is_own(self.key):
            return self.foreign()
        if kind.startswith(_OF_THE_DOUBLE):
            return SandboxError(f"{kind!r} is the double's own.", "OperationDenied", 403)
        return None

    def foreign(self) -> SandboxError:
        """Return why this kernel is not ended: an agent may be using its session."""
        return SandboxError(
            f"The kernel belongs to the session {self.key.user_session_id!r}, which was not made "
            "by Jupyter. To end it, use 'agentdouble session delete' or DeleteSession.",
            "OperationDenied",
            403,
        )

    def _check_new(self, signature: bytes) -> None:
        """Refuse a repetition: a kernel ignores it, so that the turn would never end."""
        if signature in self._signatures:
            raise SandboxError(
                "This message was sent before; each needs a msg_id of its own.",
                "InvalidParameter",
                400,
            )
        self._signatures.append(signature)

    def use(self, session: SandboxSession) -> None:
        """Count as using a session, if it lives."""
        self._sessions.destroy_due()
        if session.end_reason is None:
            self._sessions.use(session)

    def _use_living(self) -> Kernel:
        """Count as using the session; return its kernel, or raise SandboxError if it has ended."""
        self.use(self._session)
        kernel = self.kernel
        if kernel is None:
            raise SandboxError(self.ended(), "InvalidResource.Ended", 409)
        return kernel

    async def _take_turn(self, msg_id: str) -> None:
        kernel = self._use_living()
        self._running.add(msg_id)
        if self._turn is None:
            # One turn for all code that clients have sent, because the kernel queues it itself.
            self._turn = asyncio.get_running_loop().create_future()
            self._released = asyncio.Event()
            holding = asyncio.ensure_future(self._hold_turn(kernel, self._turn, self._released))
            holding.add_done_callback(lambda task: task.exception())
        await asyncio.shield(self._turn)  # other clients wait for the same turn

    async def _hold_turn(
        self, kernel: Kernel, turn: asyncio.Future[None], released: asyncio.Event
    ) -> None:
        """Hold the session's turn until all requests are done or the kernel ends."""
        try:
            async with self._session.notebook_turn(kernel):
                turn.set_result(None)
                waiting = asyncio.ensure_future(released.wait())
                first: set[asyncio.Future[Any]] = {waiting, kernel.left}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        except AgentDoubleError as error:
            # All code may have been finished meanwhile, and new code have begun another turn.
            if self._turn is turn:
                self._turn = None
            if not turn.done():
                turn.set_exception(error)

    def _finish(self, *msg_ids: str) -> None:
        """Note that code has ended; without further code, release the session's turn."""
        self._running.difference_update(msg_ids)
        if not self._running:
            self._released.set()
            self._turn = None

    def _on_iopub(self, message: Message) -> None:
        self._last_activity = self._clock.now()
        if message["header"]["msg_type"] != "status":
            return
        self._state = message["content"]["execution_state"]
        msg_id = message["parent_header"].get("msg_id")
        # By idle, not by the reply: outputs may still come after the reply, on another socket.
        if self._state == "idle" and msg_id in self._running:
            self._finish(msg_id)

    def _on_death(self, kernel: Kernel) -> None:
        if kernel is not self._kernel:
            return
        session, replaced = self._session, self._replacement()
        text = self.ended(session.end_reason or kernel.how_it_ended())
        for client in self.clients:
            client.detach()
            client.answer_with_error("SessionEnded", text)
            if replaced:
                client.tell_state("restarting")
            else:
                client.tell_end(text, is_final=not self._is_own(self.key))
            if not client.connected:
                client.close()
        self.clients = [client for client in self.clients if not client.closed]
        self._finish(*self._running)
        self._kernel = None  # so that it is followed again if its session wakes with it

    def _replacement(self) -> bool:
        """Return whether the session lives and has another kernel, that of a snapshot."""
        lives = self._session.end_reason is None
        return lives and self.language in self._session.processes.kernels

    def ended(self, reason: str = "") -> str:
        """Return the sentences that say why there is no kernel, and what to do."""
        why = reason or self._session.end_reason or "its kernel has ended"
        advice = "Restart the kernel to get a new one; its variables and files are lost."
        if not self._is_own(self.key):
            advice = advice_for(self._sessions.asleep(self._session.id))
        name = self.key.user_session_id
        return f"The sandbox session {name!r} has no such kernel any more: {why}. {advice}"

    async def interrupt(self) -> None:
        """Interrupt the code that runs."""
        if self.kernel is not None:
            await self.kernel.interrupt()

    async def restart(self, session: SandboxSession) -> None:
        """Replace the kernel by a new one of ``session``, and connect the clients to it."""
        before, self._kernel = self._kernel, None  # first: the clients need not hear of its death
        for client in self.clients:
            client.detach()
            client.answer_with_error("KernelRestarted", "The kernel was restarted.")
        self._finish(*self._running)
        if before is not None and before.alive:
            kernel = await session.restart_kernel(self.language)
        else:
            kernel = await session.kernel(self.language)
        self.follow(session, kernel)
        await asyncio.gather(*(client.open(kernel) for client in self.clients))
