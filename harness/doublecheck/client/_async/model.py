"""The model of a double, which answers from scripts or recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from doublecheck.client._async.connection import AsyncConnection
from doublecheck.values.double import ModelRequests, ModelState
from doublecheck.wire import admin, calls
from doublecheck.wire.calls import Call

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Self

T = TypeVar("T")

Times = int | Literal["all"]


class AsyncModelScript:
    """The answers of a double's model to the requests of one condition, in order.

    Each is used once, or ``times`` times. In a text, ``{{result}}`` is the result of the tool that
    was called last, and ``{{output}}`` the output of the code if that tool is run_code. On a live
    platform every method raises NotADoubleError.
    """

    def __init__(self, connection: AsyncConnection, when: Mapping[str, str]) -> None:
        self._connection = connection
        self._when = when

    async def reply(self, text: str, *, times: Times = 1) -> Self:
        """Answer with a text."""
        return await self.answer(text, times=times)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, /, **fields: Any
    ) -> Self:
        """Answer with a call of a tool: ``call_tool("run_code", code="6*7")``.

        The request must offer the tool. Arguments given as a string are sent unchanged, so a test
        can send malformed ones.
        """
        return await self.answer(calls=[(name, fields if arguments is None else arguments)])

    async def answer(
        self,
        text: str = "",
        *,
        calls: Sequence[tuple[str, Mapping[str, Any] | str]] = (),
        times: Times = 1,
    ) -> Self:
        """Answer with a text, with calls of tools, or with both."""
        named = [{"name": name, "arguments": arguments} for name, arguments in calls]
        step = {"text": text, "calls": named, "times": times}
        document = {"when": dict(self._when), "steps": [step]}
        await self._call("POST", admin.read_model_state, document)
        return self

    async def _call(
        self, method: str, read: Callable[[httpx.Response], T], document: Any = None, path: str = ""
    ) -> T:
        target, path = self._connection.target, f"/model{path}"
        request = admin.request(target, "A scripted model", method, path, document)
        return await self._connection.call(Call(request, read))

    def __repr__(self) -> str:
        conditions = ", ".join(f"{name}={value!r}" for name, value in self._when.items())
        return f"<{type(self).__name__} {conditions or 'for any request'}>"


class AsyncPlatformModel(AsyncModelScript):
    """The model of a double, in the wire forms of OpenAI and Gemini.

    ``reply()`` and ``call_tool()`` add answers to any request. Those of ``when()`` come first.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        super().__init__(connection, {})

    def when(
        self,
        *,
        contains: str | None = None,
        model: str | None = None,
        tool: str | None = None,
        after: str | None = None,
    ) -> AsyncModelScript:
        """Return the script for some requests.

        ``contains`` is a part of the last text of the user, whatever the case of its letters,
        ``model`` the requested model, ``tool`` the name of an offered tool, and ``after`` the name
        of the tool whose result the request ends with. All conditions must hold.
        """
        fields = {"contains": contains, "model": model, "tool": tool, "after": after}
        when = {name: value for name, value in fields.items() if value is not None}
        return AsyncModelScript(self._connection, when)

    async def serve(self, *names: str) -> None:
        """Let only these models exist; requests for others get an error. None: all exist."""
        document = {"models": list(names)}
        await self._call("POST", admin.read_model_state, document)

    async def state(self) -> ModelState:
        """Return the requests, and the answers that no request has used."""
        return await self._call("GET", admin.read_model_state)

    # sync only: @property
    async def requests(self) -> ModelRequests:
        """The requests to the model, oldest first; the last 200 are there."""
        return (await self.state()).requests

    async def clear(self) -> None:
        """Remove every answer."""
        await self._call("DELETE", admin.read_model_state)

    async def record(self, upstreams: Mapping[str, Mapping[str, str]]) -> None:
        """Pass requests on to real endpoints and record their answers, until a reset.

        ``upstreams`` has an endpoint for ``openai`` or ``gemini``, each with ``url``, and the
        ``key`` for its ``header``.
        """
        document = {"upstreams": {name: dict(fields) for name, fields in upstreams.items()}}
        await self._call("POST", calls.read_json, document, "/recording")

    async def replay(self, exchanges: Sequence[Mapping[str, Any]]) -> None:
        """Answer with what was recorded, until a reset; another request gets an error."""
        document = {"exchanges": list(exchanges)}
        await self._call("POST", calls.read_json, document, "/recording")

    async def recording(self) -> list[dict[str, Any]]:
        """Return the requests that were recorded, each with its answer, without secrets."""
        exchanges = (await self._call("GET", calls.read_json, path="/recording"))["exchanges"]
        return list(exchanges)
