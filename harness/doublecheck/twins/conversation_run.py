"""Run a conversation on two platforms, and compare the answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from doublecheck.client import preflight
from doublecheck.client._sync.platform import Platform
from doublecheck.comparing.references import Pairs
from doublecheck.errors import DoubleCheckError, UnreachableError
from doublecheck.twins.comparison import (
    Comparison,
    Part,
    compared,
    seeded,
)
from doublecheck.twins.conversation import Topic
from doublecheck.values.double import JournalEntry
from doublecheck.wire.exchanges import Exchange, without_secrets

_UNKNOWNS = "x-agentdouble-unknowns"


def run(
    topics: Sequence[Topic],
    double: Platform,
    live: Platform,
    *,
    allow_writes: bool,
    on_part: Callable[[Part], None] = lambda _part: None,
) -> Comparison:
    """Run each topic on both platforms, the double first; call ``on_part`` after each.

    Raises UnreachableError.
    """
    pairs = seeded(double.target, live.target)
    parts = []
    for topic in topics:
        skipped = _why_not(topic, double, live, allow_writes=allow_writes)
        part = Part(topic.name, skipped=skipped) if skipped else _part(topic, double, live, pairs)
        on_part(part)
        parts.append(part)
    return Comparison(double.url, live.url, tuple(parts))


def _why_not(topic: Topic, double: Platform, live: Platform, *, allow_writes: bool) -> str | None:
    if topic.skipped:
        return topic.skipped
    for surface in topic.surfaces:
        for platform in (double, live):
            if not platform.target.offers(surface):
                return f"the {platform.target.name} platform does not offer {surface}"
            problem = platform.target.problems.get(preflight.probed(surface))
            if problem is not None:
                return str(problem)
    if topic.writes and live.target.kind == "live" and not allow_writes:
        return "it creates something on the live platform, which needs --allow-writes (in Python allow_writes=True)"
    for platform in (double, live):
        if "sandbox" in topic.surfaces and not _has_keys(platform):
            return f"no key pair and tool id for {platform.url}"
    return None


def _has_keys(platform: Platform) -> bool:
    return platform.target.credentials is not None and platform.target.tool_id is not None


def _part(topic: Topic, double: Platform, live: Platform, pairs: Pairs) -> Part:
    ours, theirs = exchanges_of(topic, double), exchanges_of(topic, live)
    return Part(topic.name, tuple(compared(with_unknowns(ours, double), theirs, pairs)))


def exchanges_of(topic: Topic, platform: Platform) -> tuple[Exchange, ...]:
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


def with_unknowns(exchanges: Sequence[Exchange], platform: Platform) -> tuple[Exchange, ...]:
    """Return exchanges whose headers name all unknowns that a double relied on.

    The headers of a stream are sent before its end; the journal has the later unknowns.
    """
    streamed = [one for one in exchanges if _is_stream(one)]
    if not streamed or not platform.target.admin:
        return tuple(exchanges)
    with Platform(platform.target) as asking:
        entries = list(asking.journal())
    return tuple(_completed(one, entries) if _is_stream(one) else one for one in exchanges)


def _completed(exchange: Exchange, entries: list[JournalEntry]) -> Exchange:
    request = exchange.request
    for entry in reversed(entries):
        asked = (entry.method, entry.url, entry.request_body.encode())
        if asked == (request.method, request.url, request.content):
            headers = {**exchange.headers, _UNKNOWNS: ", ".join(entry.unknowns)}
            return dataclasses.replace(exchange, headers=headers)
    return exchange


def _is_stream(exchange: Exchange) -> bool:
    return any(
        name.lower() == "content-type" and value.startswith("text/event-stream")
        for name, value in exchange.headers.items()
    )
