"""Surfaces that only one of two platforms has.

If every answer of a platform about a surface says that there is no such route, and the other one
answers, the surface is absent. That is one difference, and not one per request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from doublecheck.client import preflight
from doublecheck.compare.conversation import Topic
from doublecheck.compare.differences import Compared, ConversationPart, Side
from doublecheck.target.facts import Surface

_NO_ROUTE = (404, 405, 501)
_OF_TWO_SURFACES = ("GET /health",)  # says nothing about either


def marked(
    topics: Sequence[Topic], parts: Sequence[ConversationPart], name: str
) -> tuple[ConversationPart, ...]:
    """Return the parts; those about an absent surface say which platform alone has it.

    ``name`` is that of the platform that is compared with the double.
    """
    calls: dict[Surface, list[Compared]] = {}
    for topic, part in zip(topics, parts, strict=True):
        for surface in topic.surfaces:
            calls.setdefault(preflight.probed(surface), []).extend(part.calls)
    only = {surface: side for surface, of in calls.items() if (side := _only_side(of))}
    return tuple(_marked(*pair, only, name) for pair in zip(topics, parts, strict=True))


def _marked(
    topic: Topic, part: ConversationPart, only: dict[Surface, Side], name: str
) -> ConversationPart:
    for surface in map(preflight.probed, topic.surfaces):
        if part.calls and surface in only:
            side = only[surface]
            who = "the double" if side == "double" else name
            calls = tuple(
                replace(call, only=side) if _lacks_route(call, side) else call
                for call in part.calls
            )
            return replace(part, calls=calls, only=f"only {who} has {surface}")
    return part


def _only_side(calls: Sequence[Compared]) -> Side | None:
    """Return the side that alone has the surface of some calls, or None."""
    double, live = _has_routes(calls, "double"), _has_routes(calls, "live")
    if double is None or live is None or double == live:
        return None
    return "double" if double else "live"


def _lacks_route(call: Compared, present: Side) -> bool:
    """Whether the side that lacks the surface has no route for a call."""
    absent = call.live if present == "double" else call.double
    return absent is None or absent.status in _NO_ROUTE


def _has_routes(calls: Sequence[Compared], side: Side) -> bool | None:
    """Whether a side has a route for any of the calls, or None if it did not answer."""
    exchanges = [
        call.double if side == "double" else call.live
        for call in calls
        if call.operation not in _OF_TWO_SURFACES
    ]
    statuses = {exchange.status for exchange in exchanges if exchange is not None}
    if not statuses or None in statuses:
        return None
    return any(status not in _NO_ROUTE for status in statuses)
