"""twin(): send the same requests to a double and to another platform and compare."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentdouble.errors import AgentDoubleError
from doublecheck.client import doubles, key_checks, open_target, transport
from doublecheck.compare import run
from doublecheck.compare.conversation import Talk, Topic, default
from doublecheck.compare.differences import Comparison, ConversationPart
from doublecheck.errors import InterruptedTwinError, TargetError
from doublecheck.run.platform import Platform, connect
from doublecheck.run.progress_bar import Bar
from doublecheck.target.plan import Sources, plan
from doublecheck.target.target import Target

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform


def twin(
    double: Platform | AsyncPlatform | str | None = None,
    other: Platform | AsyncPlatform | str | None = None,
    *,
    target: str | None = None,
    conversation: Talk | None = None,
    agent: str | None = None,
    profile: str | Path | None = None,
    allow_writes: bool = False,
) -> Comparison:
    """Send the same requests to a double and to another platform and return the differences.

    Each platform is an open one or a URL. Without ``double`` a new one is started; ``target`` names
    the other platform in the configuration. The requests use every surface and an agent: ``agent``,
    or one that both platforms have. A function, ``conversation``, replaces these requests: it is
    called with each Platform. A new double behaves as in the file ``profile``, which ``calibrate``
    writes. Only with ``allow_writes`` is anything invoked or created on a live platform. Sandbox
    sessions that it creates are removed.

    Raises TargetError, UnreachableError, and InterruptedTwinError, which contains the results so
    far.
    """
    with ExitStack() as stack:
        live = _other_target(other, target)
        with (
            Platform(_double(double, profile, stack)) as first,
            Platform(live, longest_answer_s=transport.LONGEST_ANSWER_S) as second,
            Bar("twin") as bar,
        ):
            allowed = allow_writes or live.allow_writes
            return compare(
                *(first, second, conversation, agent, allowed, bar.show),
                own_agents=double is None,
            )


def compare(
    double: Platform,
    live: Platform,
    conversation: Talk | None,
    agent: str | None,
    allow_writes: bool,
    progress: Callable[[int, int, str], object],
    *,
    own_agents: bool = False,
) -> Comparison:
    """Compare two open platforms. Call ``progress`` with the count, the total and each part.

    ``own_agents``: the double was started here, and serves the agents that it brings.
    """
    token = secrets.token_hex(4)
    if conversation is None:
        topics = default(double, live, token, agent, own_agents=own_agents)
    else:
        topics = [Topic("conversation", (), conversation, does="runs your conversation")]
    parts: list[ConversationPart] = []

    def on_part(part: ConversationPart) -> None:
        parts.append(part)
        progress(len(parts), len(topics), part.name)

    try:
        return run.run(
            topics, double, live, allow_writes=allow_writes, names=(token,), on_part=on_part
        )
    except KeyboardInterrupt:
        comparison = Comparison(double.url, live.url, tuple(parts))
        raise InterruptedTwinError(comparison, len(topics)) from None


@contextmanager
def double_of(
    url: str | None = None,
    apps: Sequence[str] = (),
    profile: Path | None = None,
    agents: Path | None = None,
) -> Iterator[Target]:
    """Yield the double at ``url``, or start one for the context. Raise TargetError."""
    if url is not None:
        for option, value in (("--app", apps), ("--profile", profile), ("--agents", agents)):
            if value:
                raise TargetError(
                    f"{option} applies to a double that is started here, not to a running one."
                )
        yield doubles.running_double(url)
        return
    with ExitStack() as stack:
        try:
            chosen: Mapping[str, Any] = {"profile": profile, "agents": agents}
            settings = {name: value for name, value in chosen.items() if value is not None}
            target = stack.enter_context(doubles.serving_double(*apps, **settings))
        except AgentDoubleError as error:
            raise TargetError(f"No double can be started: {error}") from None
        yield target


def configured(**options: Any) -> Target:
    """Return the platform that options and the configuration name."""
    planned = plan(Sources.of(options))
    if planned.in_process:
        raise TargetError("Name the other platform with --url or --target.")
    target = open_target.opened(planned, "--target")
    key_checks.require(target, planned)
    return target


def _double(
    double: Platform | AsyncPlatform | str | None, profile: str | Path | None, stack: ExitStack
) -> Target:
    if double is None:
        file = None if profile is None else Path(profile)
        return stack.enter_context(double_of(profile=file))
    if profile is not None:
        raise TargetError("profile= applies to a double started here, not to a running one.")
    if isinstance(double, str):
        return doubles.running_double(double)
    target = open_target.target_of(double)
    if target.kind != "double":
        raise TargetError(
            f"{target.url} is a live platform: pass the double first, then the other platform."
        )
    return open_target.require_answer(target)


def _other_target(other: Platform | AsyncPlatform | str | None, target: str | None) -> Target:
    if other is None and target is None:
        raise TargetError("Name the other platform: twin(double, other), or target=...")
    if other is None:
        return configured(target=target)
    if target is not None:
        raise TargetError(f"Both a platform and the target {target!r} are given: remove one.")
    if not isinstance(other, str):
        return open_target.require_answer(open_target.target_of(other))
    with connect(other) as platform:
        return open_target.require_answer(platform.target)
