"""Run a conversation on two platforms, and compare the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from doublecheck.client import preflight
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import DoubleCheckError, UnreachableError
from doublecheck.twins.comparison import (
    Comparison,
    Part,
    compared,
    seeded,
)
from doublecheck.twins.conversation import Topic
from doublecheck.twins.guesses import Guesses
from doublecheck.twins.leftovers import Leftovers
from doublecheck.wire.exchanges import Exchange, without_secrets

BODY_LIMIT = 16 * 1024 * 1024  # bytes of an answer that are compared


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

    The sessions that it makes are removed at the end; ``names`` are those that nobody else uses.
    Raises UnreachableError.
    """
    conversation = _Conversation(double, live, allow_writes=allow_writes)
    parts = []
    with conversation.removing(topics, names) as left:
        for topic in topics:
            part = conversation.part(topic)
            on_part(part)
            parts.append(part)
    return Comparison(double.url, live.url, (*parts, *left))


class _Conversation:
    """A conversation with a double and another platform."""

    def __init__(self, double: Platform, live: Platform, *, allow_writes: bool) -> None:
        self._double = double
        self._live = live
        self._allow_writes = allow_writes
        self._pairs = seeded(double.target, live.target)
        self._guesses = Guesses(double)
        self._leftovers: list[Leftovers] = []
        for platform in (double, live):
            platform.exchanges.body_limit = BODY_LIMIT

    def part(self, topic: Topic) -> Part:
        """Run a topic on both platforms, or say why not."""
        skipped = _why_not(topic, self._double, self._live, allow_writes=self._allow_writes)
        if skipped:
            return Part(topic.name, skipped=skipped)
        ours, theirs = (exchanges_of(topic, one) for one in (self._double, self._live))
        for leftovers, exchanges in zip(self._leftovers, (ours, theirs)):  # noqa: B905 (none, if nothing is made)
            leftovers.note(exchanges)
        return Part(topic.name, tuple(compared(self._guesses.named(ours), theirs, self._pairs)))

    @contextmanager
    def removing(self, topics: Sequence[Topic], names: Sequence[str]) -> Iterator[list[Part]]:
        """Remove what the topics make; add a part to the list if something cannot be removed."""
        left: list[Part] = []
        if any(one.writes and self._carries_out(one) for one in topics):
            self._leftovers = [Leftovers(one, names) for one in (self._double, self._live)]
        try:
            yield left
        finally:
            for platform, leftovers in zip((self._double, self._live), self._leftovers):  # noqa: B905
                sessions = leftovers.remove()
                if sessions:
                    told = f"{', '.join(sessions)} could not be removed from {platform.url}"
                    left.append(Part("removing its sessions", skipped=told))

    def _carries_out(self, topic: Topic) -> bool:
        return not _why_not(topic, self._double, self._live, allow_writes=self._allow_writes)


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
        return f"it {topic.does} on the live platform, which needs --allow-writes (in Python allow_writes=True)"
    for platform in (double, live):
        if "sandbox" in topic.surfaces and not _has_keys(platform):
            return f"no key pair and tool id for {platform.url}"
    return None


def _has_keys(platform: Platform) -> bool:
    return platform.target.credentials is not None and platform.target.tool_id is not None


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
