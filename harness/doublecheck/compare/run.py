"""Run a conversation on two platforms, and compare the answers."""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from doublecheck.api.platform import Platform
from doublecheck.client import preflight, transport
from doublecheck.compare.answers import UNKNOWNS, Answer, differences
from doublecheck.compare.conversation import Topic
from doublecheck.compare.differences import Compared, Comparison, Part
from doublecheck.compare.fields import Pairs, parsed
from doublecheck.errors import DoubleCheckError, UnreachableError
from doublecheck.target.target import Target
from doublecheck.wire import sandbox
from doublecheck.wire.calls import Request
from doublecheck.wire.event_stream import is_stream
from doublecheck.wire.exchanges import Exchange, without_secrets
from doublecheck.wire.results import response_of

_SHORTEST_NAME = 6  # a shorter name is part of other people's names, too
_CONTEXT = re.compile(r'"contextId": ?"([^"]+)"')
_MOST_PAGES = 100
_WRONG_ANSWERS = (DoubleCheckError, LookupError, TypeError, ValueError, AttributeError)


class Leftovers:
    """The sandbox sessions of a conversation on one platform.

    ``names`` are those that the conversation uses, and nobody else. A session is removed if it is
    new and was named by the conversation, or by an agent after one of its sessions.
    """

    def __init__(self, platform: Platform, names: Sequence[str] = ()) -> None:
        self._platform = platform
        self._names = {name for name in names if len(name) >= _SHORTEST_NAME}
        self._used: set[str] = set()
        self._before = self._sessions()

    @property
    def url(self) -> str:
        """The address of the platform."""
        return self._platform.url

    def note(self, exchanges: Sequence[Exchange]) -> None:
        """Note the names that a part of the conversation has used."""
        for exchange in exchanges:
            if "Action=InvokeTool" in exchange.request.url:
                body = parsed(exchange.request.content.decode("utf-8", "replace"))
                if isinstance(body, dict):
                    self._used.add(str(body.get("UserSessionId")))
            self._names.update(_CONTEXT.findall(exchange.body.decode("utf-8", "replace")))

    def remove(self) -> tuple[str, ...]:
        """Remove the sessions; return the names of those that could not be removed."""
        return tuple(
            name
            for id_, name in self._sessions().items()
            if id_ not in self._before and self._is_own(name) and not self._removed(id_)
        )

    def _is_own(self, name: str) -> bool:
        return name in self._used or any(part in name for part in self._names)

    def _removed(self, session_id: str) -> bool:
        call = sandbox.delete_session(self._platform.target, session_id, transport.signing_time())
        try:
            response = self._platform.send(call.request)
            call.read(response)
        except _WRONG_ANSWERS:
            return False
        return response.is_success

    def _sessions(self) -> Mapping[str, str]:
        """Return the names of the living sandbox sessions by their ids; {} if there is no answer."""
        target = self._platform.target
        if target.credentials is None or target.tool_id is None:
            return {}
        with suppress(*_WRONG_ANSWERS):
            return dict(self._listed(target.tool_id))
        return {}

    def _listed(self, tool_id: str) -> Iterator[tuple[str, str]]:
        body: dict[str, Any] = {"ToolId": tool_id}
        for _ in range(_MOST_PAGES):
            when = transport.signing_time()
            request = sandbox.signed(self._platform.target, body, when, action="ListSessions")
            result = json.loads(self._platform.send(request).content)["Result"]
            for session in result.get("SessionInfos") or ():
                yield str(session["SessionId"]), str(session["UserSessionId"])
            if not result.get("NextToken"):
                return
            body = {**body, "NextToken": result["NextToken"]}


_BODY_LIMIT = 16 * 1024 * 1024  # bytes of an answer that are compared
_SESSION = re.compile(
    r"/apps/[^/]+/users/[^/]+/sessions(?P<session>/[^/]+)?(?P<rest>/artifacts(/[^/]+)?)?"
)


def run(
    topics: Sequence[Topic],
    double: Platform,
    live: Platform,
    *,
    allow_writes: bool,
    names: Sequence[str] = (),
    on_part: Callable[[Part], None] = lambda _part: None,
) -> Comparison:
    """Run each topic on both platforms, the double first; call ``on_part`` after each.

    The sandbox sessions that it makes are removed at the end; ``names`` are those that nobody else
    uses. Raises UnreachableError.
    """
    pairs, unknowns = _seeded(double.target, live.target), _Unknowns(double)
    skipped = [_why_not(topic, double, live, allow_writes=allow_writes) for topic in topics]
    writes = any(topic.does and not why for topic, why in zip(topics, skipped, strict=True))
    leftovers = [Leftovers(platform, names) for platform in (double, live) if writes]
    for platform in (double, live):
        platform.exchanges.body_limit = _BODY_LIMIT
    parts = []
    try:
        for topic, why in zip(topics, skipped, strict=True):
            part = Part(topic.name, skipped=why)
            if not why:
                ours, theirs = _exchanges_of(topic, double), _exchanges_of(topic, live)
                for left, exchanges in zip(leftovers, (ours, theirs)):  # noqa: B905 (may be none)
                    left.note(exchanges)
                part = Part(topic.name, tuple(_compared(unknowns.named(ours), theirs, pairs)))
            on_part(part)
            parts.append(part)
    finally:
        for left in leftovers:
            if sessions := left.remove():
                reason = f"{', '.join(sessions)} could not be removed from {left.url}"
                parts.append(Part("removing its sessions", skipped=reason))
    return Comparison(double.url, live.url, tuple(parts))


def operation(request: Request) -> str:
    """Return ``POST /invoke``, ``InvokeTool RunCode``, ``/mcp tools/list`` and the like."""
    url = urlsplit(request.url)
    path = url.path or "/"
    document = parsed(request.content.decode("utf-8", "replace"))
    body = document if isinstance(document, dict) else {}
    action = parse_qs(url.query).get("Action")
    if action:
        return f"{action[0]} {body.get('OperationType', '')}".strip()
    if body.get("jsonrpc") and isinstance(body.get("method"), str):
        return f"{path} {body['method']}"
    match = _SESSION.fullmatch(path)
    if match is not None:
        session = "/{session}" if match["session"] else ""
        path = f"/apps/{{app}}/users/{{user}}/sessions{session}{match['rest'] or ''}"
    return f"{request.method} {path}"


def _seeded(double: Target, live: Target) -> Pairs:
    """Return the pairs of ids that are known to match beforehand."""
    pairs = Pairs()
    pairs.seed("platform", double.url, live.url)
    for surface in ("control_plane", "api_server", "mcp", "a2a"):
        pairs.seed(surface.replace("_", " "), double.at(surface), live.at(surface))
    pairs.seed("host", double.url.partition("://")[2], live.url.partition("://")[2])
    pairs.seed("tool", double.tool_id or "", live.tool_id or "")
    pairs.seed("region", double.region, live.region)
    return pairs


def _why_not(topic: Topic, double: Platform, live: Platform, *, allow_writes: bool) -> str | None:
    if topic.skipped:
        return topic.skipped
    for surface in topic.surfaces:
        for target in (double.target, live.target):
            if not target.offers(surface):
                return f"the {target.name} platform does not offer {surface}"
            problem = target.problems.get(preflight.probed(surface))
            if problem is not None:
                return str(problem)
    if topic.does and live.target.kind == "live" and not allow_writes:
        return f"it {topic.does} on the live platform, which needs --allow-writes (in Python allow_writes=True)"
    for target in (double.target, live.target):
        if "sandbox" in topic.surfaces and (target.credentials is None or target.tool_id is None):
            return f"no key pair and tool id for {target.url}"
    return None


def _exchanges_of(topic: Topic, platform: Platform) -> tuple[Exchange, ...]:
    """Run a topic on a platform and return its exchanges, without secrets.

    If an answer is not what its route promises, the topic ends there; the exchanges show that
    answer.
    """
    platform.exchanges.clear()
    try:
        topic.talk(platform)
    except UnreachableError:
        raise
    except (DoubleCheckError, LookupError, TypeError, ValueError, AttributeError, StopIteration):
        pass
    return without_secrets(platform.exchanges[:], platform.target)


def _compared(
    double: Sequence[Exchange], live: Sequence[Exchange], pairs: Pairs
) -> Iterator[Compared]:
    """Match the calls of two sides by operation and order, and yield the comparisons."""
    ours = [operation(exchange.request) for exchange in double]
    theirs = [operation(exchange.request) for exchange in live]
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, start, end, live_start, live_end in matcher.get_opcodes():
        if tag == "equal":
            for index in range(end - start):
                yield _pair(
                    ours[start + index], double[start + index], live[live_start + index], pairs
                )
        else:
            yield from (Compared(ours[index], double[index], None) for index in range(start, end))
            for index in range(live_start, live_end):
                yield Compared(theirs[index], None, live[index])


def _pair(name: str, double: Exchange, live: Exchange, pairs: Pairs) -> Compared:
    """Compare one call that both sides made."""
    pairs.learn(double.request, live.request)
    request = double.request.content.decode("utf-8", "replace")
    return Compared(
        name, double, live, differences(_answer(double), _answer(live), pairs, name, request)
    )


def _answer(exchange: Exchange) -> Answer:
    headers = _lowered(exchange.headers)
    return Answer(exchange.status, headers, exchange.body, exchange.error, exchange.body_cut)


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _Unknowns:
    """The unknowns that a double's answers rely on, without those that its profile settles.

    What a profile settles is known from a deployment, so it explains no difference.
    """

    def __init__(self, double: Platform) -> None:
        self._double = double
        self._settled: frozenset[str] | None = None

    def named(self, exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
        """Return exchanges whose headers name all unsettled unknowns.

        The headers of a stream are sent before its end; the journal has the later unknowns.
        """
        if not self._double.target.admin:
            return exchanges
        streamed = any(is_stream(response_of(exchange)) for exchange in exchanges)
        with Platform(self._double.target) as platform:
            if self._settled is None:
                unknowns = platform.unknowns().items()
                self._settled = frozenset(id_ for id_, unknown in unknowns if unknown.settled)
            entries = platform.journal() if streamed else ()
        of_request = {
            (entry.method, entry.url, entry.request_body.encode()): entry.unknowns
            for entry in entries
        }
        named = []
        for exchange in exchanges:
            request, headers = exchange.request, _lowered(exchange.headers)
            relied_on = set(headers.get(UNKNOWNS, "").replace(",", " ").split())
            if is_stream(response_of(exchange)):
                relied_on.update(of_request.get((request.method, request.url, request.content), ()))
            headers[UNKNOWNS] = ", ".join(sorted(relied_on - self._settled))
            named.append(dataclasses.replace(exchange, headers=headers))
        return named
