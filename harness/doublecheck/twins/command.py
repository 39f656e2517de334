"""``doublecheck twin``: requirements, output and exit codes."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from agentdouble.errors import AgentDoubleError
from doublecheck import atomic_files
from doublecheck.client import doubles, open_target
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import TargetError
from doublecheck.target.config_files import nearest_project
from doublecheck.target.plan import Sources, plan
from doublecheck.target.target import Target
from doublecheck.twins import conversation, conversation_run, document, html_page, scripts, tree
from doublecheck.twins.comparison import Comparison, Part


@dataclass(frozen=True)
class DoubleOptions:
    """The options about the double: the one at ``url``, or one that is started here.

    That one serves ``apps``, and answers as the file ``profile`` says.
    """

    url: str | None = None
    apps: Sequence[str] = ()
    profile: Path | None = None

    @contextmanager
    def serving(self) -> Iterator[Target]:
        """Yield its target for as long as the context lasts; raise TargetError."""
        if self.url is not None:
            for option, given in (("--app", self.apps), ("--profile", self.profile)):
                if given:
                    raise TargetError(
                        f"{option} applies to a double that is started here, not to a running one."
                    )
            yield doubles.running_double(self.url)
            return
        with ExitStack() as stack:
            try:
                settings: Mapping[str, Any] = {"profile": self.profile} if self.profile else {}
                target = stack.enter_context(doubles.serving_double(*self.apps, **settings))
            except AgentDoubleError as error:
                raise TargetError(f"No double can be started: {error}") from None
            yield target


@dataclass(frozen=True)
class PlatformOptions:
    """The options about the platform; the configuration has the rest."""

    target: str | None = None
    url: str | None = None
    config: str | None = None
    allow_writes: bool | None = None

    @contextmanager
    def opened(self) -> Iterator[Target]:
        """Open the platform and yield it; raise an error if it cannot be used."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        sources = Sources(given, project=nearest_project(), spelled="--{}".format)
        planned = plan(sources)
        if planned.in_process:
            raise TargetError("Name the platform to compare with: --url, or --target.")
        with open_target.opened(sources, planned) as target:
            yield target


@dataclass(frozen=True)
class OutputOptions:
    """The output of a comparison: a tree on the terminal or JSON, and optionally an HTML page."""

    html: Path | None = None
    as_json: bool = False

    def check(self) -> None:
        """Raise TargetError if the page could not be written, before any request is sent."""
        if self.html is not None and not self.html.parent.is_dir():
            raise TargetError(
                f"There is no folder {self.html.parent} to write {self.html.name} to."
            )

    def show(self, comparison: Comparison) -> int:
        """Show the comparison; return the exit code."""
        if self.html is not None:
            write(self.html, html_page.page(comparison))
        if self.as_json:
            print(json.dumps(document.document(comparison), indent=2))  # noqa: T201
        else:
            tree.show(comparison, Console())
        return comparison.exit_code


def twin(
    theirs: PlatformOptions,
    ours: DoubleOptions,
    script: Path | None,
    showing: OutputOptions,
    agent: str | None = None,
) -> int:
    """Compare a double with another platform; return the exit code.

    Raises TargetError and UnreachableError.
    """
    showing.check()
    with (
        theirs.opened() as target,
        ours.serving() as double,
        Platform(double) as one,
        Platform(target) as other,
    ):
        token = secrets.token_hex(4)
        topics = (
            conversation.default(one, other, token, agent)
            if script is None
            else scripts.read(script)
        )
        comparison = conversation_run.run(
            topics,
            one,
            other,
            allow_writes=target.allow_writes,
            names=(token,),
            on_part=_progress,
        )
    return showing.show(comparison)


def write(path: Path, text: str) -> None:
    """Write a file atomically; raise TargetError if it cannot be written."""
    try:
        atomic_files.write(path, text)
    except OSError as error:
        raise TargetError(f"{path} cannot be written: {error.strerror}.") from None


def _progress(part: Part) -> None:
    if sys.stderr.isatty():
        came = "not carried out" if part.skipped else part.cls.value
        print(f"{part.name}: {came}", file=sys.stderr)  # noqa: T201
