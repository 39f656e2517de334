"""Calls as statements of a test: each sends a recorded request and asserts its answer."""

from __future__ import annotations

import copy
import json
import keyword
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import ANY
from urllib.parse import parse_qs, unquote, urlsplit

import httpx

from agentdouble import invoke_tool
from agentdouble.code_tool import DEFAULT_AGENT, DEFAULT_SESSION, DEFAULT_USER, Invocation
from doublecheck.comparing.answers import Answer
from doublecheck.comparing.references import References, parsed
from doublecheck.errors import DoubleCheckError, RefusedError
from doublecheck.saved_tests.literals import WIDTH, literal
from doublecheck.saved_tests.loosening import in_lines, loosened
from doublecheck.saved_tests.repeating import Repeats
from doublecheck.saved_tests.trial import FIXTURE
from doublecheck.wire import a2a, api_server, application, mcp, sandbox
from doublecheck.wire.event_stream import data_of
from doublecheck.wire.exchanges import Exchange
from doublecheck.wire.redaction import HIDDEN

INDENT = 4
PLATFORM = "<platform>"
PROBES = ("ping", "health", "readiness", "liveness")
_OWN = ("prompt", "user_id", "session_id", "request_id", "headers", "self", "streaming")
_NOT_SENT = frozenset(
    [
        *("host", "content-length", "connection", "accept", "accept-encoding", "user-agent"),
        *("authorization", "x-date", "x-content-sha256", "x-security-token", "cookie"),
    ]
)
_NAMED = ("user_id", "session_id", "request_id")
_CARD = "/.well-known/agent-card.json"
_SENDING = ("SendMessage", "message/send")
_IN_PASSING = ("initialize", "notifications/initialized", "ping")


class _NotSpokenError(Exception):
    """A call for which Platform has no method."""


_UNSPOKEN = (
    *(_NotSpokenError, DoubleCheckError),
    *(LookupError, TypeError, ValueError, AttributeError),  # the answer is malformed
)


class Statements:
    """Converts exchanges to statements; has a variable for each session.

    ``imports`` are the names that the statements need. ``addresses`` are the platform's own, which
    are different where the test runs. What ``repeats`` show to change is not asserted. The
    statements of a ``trial`` assert nothing, they note the values that are compared.
    """

    def __init__(
        self,
        addresses: Collection[str] = (),
        *,
        repeats: Repeats | None = None,
        trial: bool = False,
    ) -> None:
        self.imports: set[str] = set()
        self._repeats = repeats or Repeats()
        self._is_trial = trial
        self._compared_so_far = 0
        self._seen = References()
        for address in addresses:
            self._seen.add(address, PLATFORM)
        self._sessions: dict[str, str] = {}
        self._asked = 0

    def of(self, exchange: Exchange) -> Iterator[str]:
        """Yield the statements of a call; none if another call makes it implicitly."""
        obstacle = _obstacle(exchange)
        if obstacle:
            yield f"# not asked: {_what(exchange)!a}: {obstacle}"
            return
        before = copy.deepcopy(self.__dict__)
        try:
            lines = list(self._spoken(exchange))
        except _UNSPOKEN:
            self.__dict__.update(before)
            lines = list(self._by_hand(exchange))
        yield from lines

    def _spoken(self, exchange: Exchange) -> Iterator[str]:
        path, query = urlsplit(exchange.request.url)[2:4]
        if path.startswith("/_emulator/"):
            return _admin(exchange)
        if "Action=InvokeTool" in query:
            return self._run_code(exchange)
        if path.strip("/") in PROBES and not query:
            return self._probe(exchange, path.strip("/"))
        if path.startswith("/mcp"):
            return self._mcp(exchange, path)
        talks: Mapping[str, Callable[[Exchange], Iterator[str]]] = {
            "/invoke": self._invoke,
            "/run": self._run,
            "/run_sse": self._run,
        }
        if path in talks:
            return talks[path](exchange)
        if path in ("/", _CARD) and not query:
            return self._a2a(exchange, path)
        if path == "/list-apps" and not query:
            return self._apps(exchange)
        if path.startswith("/apps/") and not query:
            return self._session(exchange, path)
        raise _NotSpokenError

    def _probe(self, exchange: Exchange, name: str) -> Iterator[str]:
        _require(exchange.request.method == "GET")
        value = application.read_probe(_response(exchange))
        yield from self._compared(value, f"platform.{name}()")

    def _invoke(self, exchange: Exchange) -> Iterator[str]:
        payload = _object(exchange)
        prompt = payload.pop("prompt", None)
        _require(isinstance(prompt, str) and _are_names(payload, _OWN))
        sent = _sent(exchange)
        named = {name: sent.pop(name) for name in _NAMED if name in sent}
        arguments = [literal(prompt), *_keywords({**named, **payload})]
        if sent:
            arguments.append(f"headers={literal(sent)}")
        if Answer(200, _lower(exchange.headers)).streamed:
            _require(exchange.status == 200)
            data = "".join(data_of(exchange.body))
            call = _call("platform.stream", arguments)
            yield from self._compared(data, f'"".join(event.data for event in {call})')
            return
        value = application.read_value(_response(exchange))
        yield from self._compared(value, _call("platform.invoke", arguments))

    def _run_code(self, exchange: Exchange) -> Iterator[str]:
        body = _object(exchange)
        _require(body.get("OperationType") == invoke_tool.RUN_CODE)
        payload = parsed(body["OperationPayload"])
        user, session = _who(body["UserSessionId"])
        named = {"user_id": user, "session_id": session, "timeout_s": payload.get("timeout")}
        defaults = {"user_id": DEFAULT_USER, "session_id": DEFAULT_SESSION, "timeout_s": None}
        given = {name: value for name, value in named.items() if value != defaults[name]}
        language = payload.get("kernel_name", "python3")
        arguments = [
            literal(payload["code"]),
            *([literal(language)] if language != "python3" else []),
        ]
        call = _call("platform.run_code", [*arguments, *_keywords(given)])
        try:
            result = sandbox.read_result(_response(exchange))
        except RefusedError as error:
            self.imports.add("RefusedError")
            yield "with pytest.raises(RefusedError) as refused:"
            yield f"{' ' * INDENT}{call}"
            yield from self._compared(error.code, "refused.value.code")
            return
        self._asked += 1
        name = f"result_{self._asked}"
        yield f"{name} = {call}"
        yield from self._compared(result.status, f"{name}.status", of_code=True)
        if result.stdout:
            yield from self._compared(result.stdout, f"{name}.stdout", of_code=True)
        if result.text is not None:
            yield from self._compared(result.text, f"{name}.text", of_code=True)
        if result.error is not None:
            self.imports.add("CodeError")
            if not self._is_trial:
                yield f"assert isinstance({name}.error, CodeError)"
            yield from self._compared(result.error.ename, f"{name}.error.ename", of_code=True)
            yield from self._compared(result.error.evalue, f"{name}.error.evalue", of_code=True)

    def _session(self, exchange: Exchange, path: str) -> Iterator[str]:
        words = [unquote(word) for word in path.split("/")[1:]]
        _require(words[2] == "users" and words[4] == "sessions")
        if len(words) == 7:
            _require((words[6], exchange.request.method) == ("artifacts", "GET"))
            call = f"platform.list_artifacts({self._sessions[words[5]]})"
            yield from self._compared(_document(exchange), f"list({call})")
            return
        _require(len(words) in (5, 6))
        app, user, method = words[1], words[3], exchange.request.method
        given = {} if user == DEFAULT_USER else {"user_id": user}
        if method == "POST":
            yield from self._created(exchange, app, given, words[5:])
        elif len(words) == 6:
            yield from self._kept(exchange, words[5], method)
        else:
            _require(method == "GET")
            count = len(_document(exchange))
            call = _call("platform.list_sessions", [literal(app), *_keywords(given)])
            yield from self._compared(count, f"len({call})")

    def _apps(self, exchange: Exchange) -> Iterator[str]:
        names = api_server.read_apps(_response(exchange))
        yield from self._compared(list(names), "list(platform.list_apps())")

    def _created(
        self, exchange: Exchange, app: str, given: Mapping[str, str], id_: list[str]
    ) -> Iterator[str]:
        body = _object(exchange) if exchange.request.content else {}
        _require(body.keys() <= {"state", "sessionId"} and not (id_ and body))
        created = api_server.read_session(_response(exchange))
        name = f"session_{len(self._sessions) + 1}"
        own = id_[0] if id_ else body.get("sessionId")
        more = {"session_id": own, "state": body.get("state")}
        fields = {**given, **{key: value for key, value in more.items() if value is not None}}
        yield f"{name} = {_call('platform.create_session', [literal(app), *_keywords(fields)])}"
        self._sessions[created.id] = name

    def _kept(self, exchange: Exchange, id_: str, method: str) -> Iterator[str]:
        name = self._sessions[id_]
        if method == "DELETE":
            _require(exchange.status in (200, 204))
            yield f"platform.delete_session({name})"
            return
        _require(method == "GET")
        session = api_server.read_session(_response(exchange))
        call = f"platform.get_session({name}.app_name, {name}.id, user_id={name}.user_id)"
        told = [event.text for event in session.events]
        yield from self._compared(told, f"[event.text for event in {call}.events]")

    def _run(self, exchange: Exchange) -> Iterator[str]:
        _require(exchange.status == 200)
        body = _object(exchange)
        name = self._sessions[body.pop("sessionId")]
        message = body.pop("newMessage")
        _require(message == {"role": "user", "parts": [{"text": message["parts"][0]["text"]}]})
        fields = {key: value for key, value in body.items() if key not in ("appName", "userId")}
        streams = urlsplit(exchange.request.url).path == "/run_sse"
        _require(_are_names(fields, () if streams else ("streaming",)))
        if fields.get("streaming") is False:
            del fields["streaming"]
        arguments = [name, literal(message["parts"][0]["text"]), *_keywords(fields)]
        call = _call("platform.run_sse" if streams else "platform.run", arguments)
        events = (
            [api_server.read_event(data) for data in data_of(exchange.body)]
            if streams
            else [api_server.read_event(json.dumps(one)) for one in _document(exchange)]
        )
        if fields.get("streaming"):  # the places where the text is cut have no meaning
            told: Any = "".join(event.text for event in events if not event.partial)
            expression = f'"".join(event.text for event in {call} if not event.partial)'
        else:
            told, expression = [event.text for event in events], f"[event.text for event in {call}]"
        yield from self._compared(told, expression)

    def _mcp(self, exchange: Exchange, path: str) -> Iterator[str]:
        if exchange.request.method == "DELETE":
            return
        body = _object(exchange)
        method, params = body.get("method"), body.get("params", {})
        if method in _IN_PASSING:
            return
        client = "platform.mcp()" if path == mcp.PATH else f"platform.mcp({literal(path)})"
        if method == "tools/list" and not params.get("cursor"):
            names = [tool["name"] for tool in mcp.read_result(_response(exchange))["tools"]]
            asked, expression = "client.tools()", "[tool.name for tool in client.tools()]"
            value: Any = names
        else:
            _require(method == "tools/call" and "name" in params)
            given = params.get("arguments") or {}
            _require(_are_names(given, ()))
            asked = _call("client.call", [literal(params["name"]), *_keywords(given)])
            result = mcp.read_result(_response(exchange))
            texts = [one["text"] for one in result["content"] if one.get("type") == "text"]
            value, expression = "\n".join(texts), f"{asked}.text"
        yield f"with {client} as client:"
        yield from self._compared(value, expression, INDENT)

    def _a2a(self, exchange: Exchange, path: str) -> Iterator[str]:
        if path == _CARD:
            _require((exchange.request.method, exchange.status) == ("GET", 200))
            yield from self._compared(_document(exchange)["name"], 'platform.a2a().card["name"]')
            return
        body = _object(exchange)
        message = body["params"]["message"]
        _require(body["method"] in _SENDING and not {"contextId", "taskId"} & message.keys())
        (part,) = message["parts"]
        _require(part.keys() <= {"kind", "text"})
        answer = a2a.read_event(_response(exchange), exchange.body.decode())
        self._asked += 1
        name = f"answer_{self._asked}"
        yield f"{name} = platform.a2a().send({literal(part['text'])})"
        yield from self._compared(answer.state, f"{name}.state")
        yield from self._compared(list(answer.texts), f"list({name}.texts)")

    def _by_hand(self, exchange: Exchange) -> Iterator[str]:
        """Yield the statements of a call for which Platform has no method."""
        request = exchange.request
        obstacle = self._not_by_hand(exchange)
        if obstacle:
            yield f"# not asked: {_what(exchange)!a}: {obstacle}"
            return
        arguments = [literal(request.method), literal(_relative(request.url))]
        sent = _sent(exchange)
        if request.headers and _lower(request.headers).get("content-type"):
            sent["Content-Type"] = _lower(request.headers)["content-type"]
        if sent:
            arguments.append(f"headers={literal(sent)}")
        if request.content:
            arguments.append(f"content={_bytes(request.content)}")
        self._asked += 1
        name = f"answer_{self._asked}"
        yield f"{name} = {_call('platform.request', arguments)}"
        yield from self._compared(exchange.status, f"{name}.status_code")
        answer = Answer(exchange.status, _lower(exchange.headers), exchange.body)
        if answer.media_type == "application/json":
            yield from self._compared(_document(exchange), f"{name}.json()")

    def _not_by_hand(self, exchange: Exchange) -> str | None:
        path, query = urlsplit(exchange.request.url)[2:4]
        if "Action=" in query:
            return "only code is run in a saved test"
        if path.startswith("/mcp"):
            return "only tools are listed and called in a saved test"
        body = parsed(exchange.request.content.decode("utf-8", "replace"))
        named = [*path.split("/"), *(body.values() if isinstance(body, dict) else ())]
        ids = [one for one in named if isinstance(one, str)]
        if any(one in self._sessions or self._seen.known(one) for one in ids):
            return "it needs an id that an earlier answer gave"
        belongs = path.startswith("/run") or path.count("/") > 5
        if belongs and exchange.status == 200:
            return "its session was made before the first call that is kept"
        return None

    def _compared(
        self, value: Any, expression: str, indent: int = 0, *, of_code: bool = False
    ) -> Iterator[str]:
        """Yield an assertion that an expression has a value, except for what changes."""
        margin = " " * indent
        if HIDDEN in json.dumps(value):
            yield f"{margin}_ = {expression}  # not compared: a secret was taken out"
            return
        number, self._compared_so_far = self._compared_so_far, self._compared_so_far + 1
        repeats = self._repeats.of(number)
        normal = self._seen.normalised(value)
        # Texts are compared as they are if they were repeated: not each id that somebody printed
        # has the form of one, but each changes.
        if normal != value and not (_is_text(value) and (repeats or self._is_trial)):
            self.imports.add("References")
            value, expression = normal, f"seen.normalised({expression})"
        if self._is_trial:
            yield f"{margin}{FIXTURE}.note({number}, lambda: {expression})"
            return
        for line in self._asserted(value, expression, repeats, indent, of_code):
            yield margin + line

    def _asserted(
        self, value: Any, expression: str, repeats: Sequence[Any], indent: int, of_code: bool
    ) -> Iterator[str]:
        """Yield the assertion of a value, without what changed when the calls were repeated.

        What code comes to is the same in every sandbox. What an application or an agent says may
        differ from the repeats because the tests serve another one.
        """
        kept = loosened(value, repeats, like_recorded=of_code)
        if kept is ANY:
            lines = in_lines(value, repeats, like_recorded=of_code)
            if lines is None:
                yield f"_ = {expression}  # not compared: it changes from one time to the next"
                return
            kept, expression = lines, f"{expression}.splitlines()"
        if kept is not value:
            self.imports.add("ANY")
        one_line = f"assert {literal(kept)} == {expression}"
        if INDENT + indent + len(one_line) <= WIDTH:
            yield one_line
            return
        yield f"assert {literal(kept, INDENT + indent, len('assert '))} == {expression}"


def _admin(exchange: Exchange) -> Iterator[str]:
    """Yield statements that move the clock or reset; reading requests are not part of a test."""
    if urlsplit(exchange.request.url).path.endswith("/reset"):
        yield "platform.reset()"
    body = parsed(exchange.request.content.decode("utf-8", "replace"))
    if isinstance(body, dict) and isinstance(body.get("advance_s"), (int, float)):
        yield f"platform.clock.advance(seconds={body['advance_s']!r})"


def _obstacle(exchange: Exchange) -> str | None:
    if exchange.status is None:
        return "it had no answer"
    if exchange.request_cut or exchange.body_cut:
        return "it was too large to be kept completely"
    if HIDDEN in exchange.request.url or HIDDEN.encode() in exchange.request.content:
        return "a secret in it is not kept"
    action = parse_qs(urlsplit(exchange.request.url).query).get("Action")
    if action and (action != ["InvokeTool"] or _operation(exchange) != invoke_tool.RUN_CODE):
        return "only code is run in a saved test"
    return None


def _operation(exchange: Exchange) -> Any:
    body = parsed(exchange.request.content.decode("utf-8", "replace"))
    return body.get("OperationType") if isinstance(body, dict) else None


def _what(exchange: Exchange) -> str:
    return f"{exchange.request.method} {_relative(exchange.request.url)}"


def _relative(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _call(function: str, arguments: list[str]) -> str:
    return f"{function}({', '.join(arguments)})"


def _keywords(fields: Mapping[str, Any]) -> list[str]:
    return [f"{name}={literal(value)}" for name, value in fields.items()]


def _are_names(fields: Mapping[str, Any], taken: tuple[str, ...]) -> bool:
    """Whether all field names can be names of keyword arguments."""
    return all(
        name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and name not in taken
        for name in fields
    )


def _who(user_session_id: str) -> tuple[str, str]:
    """Return the user and the session of an id; an id in another format is only a session."""
    user, _, session = user_session_id.removeprefix(f"{DEFAULT_AGENT}_").partition("_")
    if session and Invocation(user, session, DEFAULT_AGENT).user_session_id == user_session_id:
        return user, session
    return DEFAULT_USER, user_session_id


def _is_text(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return all(isinstance(one, str) for one in texts)


def _require(holds: bool) -> None:
    if not holds:
        raise _NotSpokenError


def _response(exchange: Exchange) -> httpx.Response:
    request = httpx.Request(exchange.request.method, f"http://x{_relative(exchange.request.url)}")
    kind = {"content-type": _lower(exchange.headers).get("content-type", "")}
    return httpx.Response(
        exchange.status or 0, headers=kind, content=exchange.body, request=request
    )


def _document(exchange: Exchange) -> Any:
    return Answer(exchange.status, {}, exchange.body).document()


def _object(exchange: Exchange) -> dict[str, Any]:
    body = parsed(exchange.request.content.decode("utf-8", "replace"))
    _require(isinstance(body, dict))
    return dict(body)


def _sent(exchange: Exchange) -> dict[str, str]:
    """Return the headers that are the caller's own."""
    dropped = {*_NOT_SENT, "content-type"}
    return {
        name: value
        for name, value in exchange.request.headers.items()
        if name.lower() not in dropped and HIDDEN not in value
    }


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _bytes(content: bytes) -> str:
    written = repr(content)
    plain = written.startswith("b'") and b'"' not in content
    return f'b"{written[2:-1]}"' if plain else written
