"""Run a conversation on two platforms, and compare the answers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from agentdouble.core.diff.operations import operation
from agentdouble.core.diff.pairs import Pairs
from doublecheck.client import preflight
from doublecheck.compare import absent_surfaces
from doublecheck.compare.alternatives import DoubleAnswers
from doublecheck.compare.conversation import Topic
from doublecheck.compare.differences import Compared, Comparison, ConversationPart
from doublecheck.compare.explaining import differences
from doublecheck.errors import DoubleCheckError, UnreachableError
from doublecheck.run.platform import Platform
from doublecheck.target.target import Target
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange, without_secrets
from doublecheck.wire.results import body_of

_SHORTEST_NAME = 6  # a shorter name may occur in unrelated names
_CONTEXT = re.compile(r'"contextId": ?"([^"]+)"')

_BODY_LIMIT = 16 * 1024 * 1024  # bytes of an answer that are compared


class ConversationLeftovers:
    """The sandbox sessions of a conversation on one platform.

    A new session is removed if the conversation named it, or if an agent named it after one of the
    unique ``names``.
    """

    def __init__(self, platform: Platform, names: Sequence[str] = ()) -> None:
        self.platform = platform
        self._names = {name for name in names if len(name) >= _SHORTEST_NAME}
        self._used: set[str] = set()
        self._before = self._sessions()

    def note(self, exchanges: Sequence[Exchange]) -> None:
        """Note the names that a part of the conversation has used."""
        self._used |= {str(body_of(exchange).get("UserSessionId")) for exchange in exchanges}
        for exchange in exchanges:
            self._names.update(_CONTEXT.findall(exchange.body.decode("utf-8", "replace")))

    def remove(self) -> tuple[str, ...]:
        """Remove the sessions. Return the names of those that could not be removed."""
        remaining = []
        for id_, name in self._sessions().items() - self._before.items():
            if name in self._used or any(part in name for part in self._names):
                removed = False
                with suppress(DoubleCheckError):
                    removed = self.platform.sandbox(instance_id=id_).destroy()
                if not removed:
                    remaining.append(name)
        return tuple(remaining)

    def _sessions(self) -> Mapping[str, str]:
        """Return the names of the active sandbox sessions by id; {} if there is no answer."""
        with suppress(DoubleCheckError):
            return self.platform._sandbox_names()
        return {}


def run(
    topics: Sequence[Topic],
    double: Platform,
    live: Platform,
    *,
    allow_writes: bool,
    names: Sequence[str] = (),
    on_part: Callable[[ConversationPart], None] = lambda _part: None,
) -> Comparison:
    """Run each topic on both platforms, the double first. Call ``on_part`` after each.

    The sandbox sessions that it creates are removed at the end; ``names`` are unique names. Raises
    UnreachableError.
    """
    pairs, answers = _seeded(double.target, live.target), DoubleAnswers(double.target)
    skipped = [_why_not(topic, double, live, allow_writes=allow_writes) for topic in topics]
    writes = any(topic.does and not reason for topic, reason in zip(topics, skipped, strict=True))
    leftovers = [ConversationLeftovers(platform, names) for platform in (double, live) if writes]
    for platform in (double, live):
        platform.exchanges.body_limit = _BODY_LIMIT
    parts = []
    try:
        for topic, why in zip(topics, skipped, strict=True):
            part = ConversationPart(topic.name, skipped=why)
            if not why:
                first, second = _exchanges_of(topic, double), _exchanges_of(topic, live)
                # without writes there are no leftovers
                for resources, exchanges in zip(leftovers, (first, second)):  # noqa: B905
                    resources.note(exchanges)
                part = ConversationPart(topic.name, tuple(_compared(answers, first, second, pairs)))
            on_part(part)
            parts.append(part)
    finally:
        for resources in leftovers:
            if sessions := resources.remove():
                reason = f"{', '.join(sessions)} could not be removed from {resources.platform.url}"
                parts.append(ConversationPart("removing its sessions", skipped=reason))
    name = live.target.name if live.target.name != double.target.name else "the other"
    of_topics, removal = parts[: len(topics)], parts[len(topics) :]
    return Comparison(
        double.url, live.url, (*absent_surfaces.marked(topics, of_topics, name), *removal), name
    )


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
    for surface in topic.surfaces:
        for target in (double.target, live.target):
            if not target.offers(surface):
                return f"the {target.name} platform does not offer {surface}"
            problem = target.problems.get(preflight.probed(surface))
            if problem is not None:
                return str(problem)
    if topic.skipped:
        return topic.skipped
    if topic.does and live.target.kind == "live" and not allow_writes:
        return f"it {topic.does} on the live platform, which needs --allow-writes (in Python allow_writes=True)"
    for target in (double.target, live.target):
        if "sandbox" in topic.surfaces and (target.credentials is None or target.tool_id is None):
            return f"no key pair and tool id for {target.url}"
    return None


def _exchanges_of(topic: Topic, platform: Platform) -> tuple[Exchange, ...]:
    """Run a topic on a platform and return its exchanges, without secrets.

    If an answer has the wrong format, the topic ends there; the exchanges show that answer.
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
    answers: DoubleAnswers, double: Sequence[Exchange], live: Sequence[Exchange], pairs: Pairs
) -> Iterator[Compared]:
    """Match the calls of two sides by operation and order, and yield the comparisons."""
    recorded = answers.recorded(double)
    double = [call.exchange for call in recorded]
    names = [_name(exchange.request) for exchange in double]
    live_names = [_name(exchange.request) for exchange in live]
    matcher = difflib.SequenceMatcher(None, names, live_names, autojunk=False)
    for tag, start, end, live_start, live_end in matcher.get_opcodes():
        if tag == "equal":
            for index in range(start, end):
                first, second = double[index], live[index - start + live_start]
                pairs.learn(first.request, second.request)
                changes = differences(answers, recorded[index], second, pairs, names[index])
                yield Compared(names[index], first, second, changes)
        else:
            yield from (Compared(names[index], double[index], None) for index in range(start, end))
            for index in range(live_start, live_end):
                yield Compared(live_names[index], None, live[index])


def _name(request: Request) -> str:
    return operation(request.method, request.url, request.content)
