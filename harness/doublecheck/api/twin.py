"""twin(): send the same requests to a double and to another platform and compare."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from doublecheck.api.connect import connect
from doublecheck.client import doubles, open_target
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import InterruptedTwinError, TargetError
from doublecheck.runner.progress_bar import Bar
from doublecheck.runner.subject import target_of
from doublecheck.target.target import Target
from doublecheck.twins import conversation, conversation_run, scripts
from doublecheck.twins.command import DoubleOptions, PlatformOptions
from doublecheck.twins.comparison import Comparison, Part

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform


def twin(
    double: Platform | AsyncPlatform | str | None = None,
    other: Platform | AsyncPlatform | str | None = None,
    *,
    target: str | None = None,
    script: str | Path | None = None,
    agent: str | None = None,
    profile: str | Path | None = None,
    allow_writes: bool = False,
) -> Comparison:
    """Send the same requests to a double and to another platform and return the differences.

    Each platform is an open one or a URL. Without ``double`` a new one is started; ``target`` names
    the other platform in the configuration. The requests use every surface and an agent: ``agent``,
    or one that both platforms have. A TOML file, ``script``, replaces these requests. A new double
    answers as the file ``profile`` says, which ``calibrate`` writes. Only with ``allow_writes`` is
    anything invoked or created on a live platform; sessions that are made are removed.

    Raises TargetError, UnreachableError, and InterruptedTwinError, which contains the results so
    far.
    """
    with ExitStack() as stack:
        theirs = _theirs(other, target, stack)
        one = stack.enter_context(Platform(_ours(double, profile, stack)))
        two = stack.enter_context(Platform(theirs))
        token = secrets.token_hex(4)
        topics = (
            scripts.read(Path(script))
            if script is not None
            else conversation.default(one, two, token, agent)
        )
        bar, parts = stack.enter_context(Bar("twin")), list[Part]()

        def on_part(part: Part) -> None:
            parts.append(part)
            bar.show(len(parts), len(topics), part.name)

        allowed = allow_writes or theirs.allow_writes
        try:
            return conversation_run.run(
                topics, one, two, allow_writes=allowed, names=(token,), on_part=on_part
            )
        except KeyboardInterrupt:
            came = Comparison(one.url, two.url, tuple(parts))
            raise InterruptedTwinError(came, len(topics)) from None


def _ours(
    double: Platform | AsyncPlatform | str | None, profile: str | Path | None, stack: ExitStack
) -> Target:
    if double is None:
        options = DoubleOptions(profile=None if profile is None else Path(profile))
        return stack.enter_context(options.serving())
    if profile is not None:
        raise TargetError("profile= is about a double that is started here, not a running one.")
    if isinstance(double, str):
        return doubles.running_double(double)
    target = target_of(double)
    if target.kind != "double":
        raise TargetError(
            f"{target.url} is a live platform: pass the double first, then the other platform."
        )
    return open_target.require_answer(target)


def _theirs(
    other: Platform | AsyncPlatform | str | None, target: str | None, stack: ExitStack
) -> Target:
    if other is None and target is None:
        raise TargetError(
            "Name the platform to compare the double with: twin(double, other), or target=..."
        )
    if other is None:
        return stack.enter_context(PlatformOptions(target).opened())
    if target is not None:
        raise TargetError(f"Both a platform and the target {target!r} are given: say one of them.")
    if not isinstance(other, str):
        return open_target.require_answer(target_of(other))
    with connect(other) as found:
        return open_target.require_answer(found.target)
