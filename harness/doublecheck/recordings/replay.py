"""Replay a recording on a double: the same requests in order, with the double's own ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from agentdouble import signing
from agentdouble.invoke_tool import SERVICE
from doublecheck.client import transport
from doublecheck.client._sync.platform import Platform
from doublecheck.comparing.operations import operation
from doublecheck.comparing.references import Pairs, parsed
from doublecheck.errors import NoAnswerError
from doublecheck.recordings.recording_file import KEPT, Recorded, Recording
from doublecheck.target.surfaces import surface_of
from doublecheck.twins.comparison import Compared, Comparison, Part, pair
from doublecheck.twins.guesses import Guesses
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange, without_secrets
from doublecheck.wire.redaction import HIDDEN

PATIENCE_S = 330.0
_SESSION_HEADER = "mcp-session-id"
_MADE_ANEW = frozenset(
    [
        "host",
        "content-length",
        "connection",
        "accept-encoding",
        "transfer-encoding",
        "authorization",
        "x-date",
        "x-content-sha256",
        "x-security-token",
        "cookie",
    ]
)


def replay_recording(recording: Recording, double: Platform) -> Comparison:
    """Send the requests of a recording to a double; compare its answers, operation by operation.

    An id of the double replaces the recorded id in every later request. Raises UnreachableError.
    """
    pairs, guesses = Pairs(), Guesses(double)
    double.exchanges.body_limit = KEPT
    pairs.seed("platform", double.url, recording.target)
    pairs.seed("host", _host(double.url), _host(recording.target))
    replayed = [(one, _replayed(one, double, pairs, guesses)) for one in recording.exchanges]
    return Comparison(double.url, f"{recording.target} (recorded)", tuple(_by_operation(replayed)))


def _by_operation(replayed: Sequence[tuple[Recorded, Compared | str]]) -> Iterator[Part]:
    calls: dict[str, list[Compared]] = {}
    for recorded, came in replayed:
        name = _operation(recorded.exchange)
        if isinstance(came, str):
            yield Part(f"{name} (line {recorded.line})", skipped=came)
        else:
            calls.setdefault(name, []).append(came)
    for name, compared in calls.items():
        yield Part(name, tuple(compared))


def _replayed(
    recorded: Recorded, double: Platform, pairs: Pairs, guesses: Guesses
) -> Compared | str:
    """Return the outcome of one request, or the reason why it was not sent."""
    obstacle = _obstacle(recorded.exchange, double)
    if obstacle:
        return obstacle
    _pair_tools(recorded.exchange, double, pairs)
    double.exchanges.clear()
    with suppress(NoAnswerError):  # a missing answer is part of the comparison
        double.send(_request(recorded.exchange.request, double, pairs))
    (ours,) = guesses.named(without_secrets(double.exchanges[:], double.target))
    _pair_sessions(ours, recorded.exchange, pairs)
    return pair(ours, recorded.exchange, pairs)


def _obstacle(exchange: Exchange, double: Platform) -> str | None:
    request = exchange.request
    if exchange.status is None:
        return f"the recording has no answer to it ({exchange.error})"
    if exchange.error is not None:
        return f"its recorded answer broke off ({exchange.error})"
    if exchange.request_cut or exchange.body_cut:
        return "it was too large to be recorded completely"
    if HIDDEN in request.url:
        return "its URL has a token, which is not recorded"
    if _is_action(request) and double.target.credentials is None:
        return f"no key pair is known that {double.url} accepts"
    return None


def _request(recorded: Request, double: Platform, pairs: Pairs) -> Request:
    """Translate a recorded request for the double."""
    path = pairs.to_double(recorded.url)
    content = _content(recorded.content, pairs)
    headers = {
        name: pairs.to_double(value)
        for name, value in recorded.headers.items()
        if name.lower() not in _MADE_ANEW and value != HIDDEN
    }
    if _is_action(recorded):
        return _signed(recorded.method, path, headers, content, double)
    surface = surface_of(path)
    key = double.target.key_of(surface)
    if key is not None:
        headers["Authorization"] = f"Bearer {key.reveal()}"
    url = double.target.at(surface) + path
    return Request(recorded.method, url, headers, content, PATIENCE_S)


def _signed(
    method: str, path: str, headers: Mapping[str, str], content: bytes, double: Platform
) -> Request:
    target = double.target
    address, url = target.address(), target.control_plane + path
    kept = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    signed = signing.sign(
        method,
        url,
        content,
        credentials=address.credentials,
        region=target.region,
        service=SERVICE,
        when=transport.signing_time(),
    )
    return Request(method, url, {**kept, **signed}, content, PATIENCE_S)


def _content(content: bytes, pairs: Pairs) -> bytes:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    document = parsed(text)
    translated = pairs.to_double(text if document is None else document)
    if translated == (text if document is None else document):
        return content
    return (translated if document is None else json.dumps(translated)).encode()


def _pair_tools(exchange: Exchange, double: Platform, pairs: Pairs) -> None:
    """Match the double's sandbox tool with the recorded one."""
    document = parsed(exchange.request.content.decode("utf-8", "replace"))
    tool = document.get("ToolId") if isinstance(document, dict) else None
    if isinstance(tool, str) and _is_action(exchange.request):
        pairs.seed("tool", double.target.tool_id or "", tool)


def _pair_sessions(ours: Exchange, recorded: Exchange, pairs: Pairs) -> None:
    """Match an MCP session that the double opened with the recorded one."""
    ids = [_header(one.headers, _SESSION_HEADER) for one in (ours, recorded)]
    if ids[0] and ids[1] and ids[0] != ids[1]:
        pairs.link(ids[0], ids[1], "MCP session")


def _is_action(request: Request) -> bool:
    return "Action=" in request.url.partition("?")[2]


def _operation(exchange: Exchange) -> str:
    request = exchange.request
    return operation(request.method, request.url, request.content)


def _header(headers: Mapping[str, str], wanted: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == wanted), "")


def _host(url: str) -> str:
    return url.partition("://")[2]
