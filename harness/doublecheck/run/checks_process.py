"""Run the checks of a platform object in a separate process.

pytest takes over the streams of its process, and a notebook's kernel has a running loop and shows
everything that is printed. So the checks run in another process: it gets the keys in the
environment, and prints a line for each check that begins. A bar shows its progress.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from agentdouble.core.signing import Credentials
from agentdouble.processes.fork_server import processes
from doublecheck.client import open_target, transport
from doublecheck.errors import (
    ArgumentError,
    ChecksCrashedError,
    DoubleCheckError,
    InterruptedChecksError,
    TargetError,
)
from doublecheck.run import command
from doublecheck.target.facts import variable
from doublecheck.target.plan import FIELDS, variable_of
from doublecheck.target.target import Kind, Target

if TYPE_CHECKING:
    from doublecheck.reports.report import Report

_AFTER_S = 1.0  # seconds; shorter work needs no progress
_FORMAT = "{desc}: {bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Bar:
    """A progress bar: a tqdm bar that appears after a second, and is removed at the end.

    Use it in a with statement. In a notebook it is a widget with ipywidgets, and a line of text
    without. On a terminal it is a line. It is not shown if standard error goes to a file or the log
    of CI. The commands have their own progress line, which needs no tqdm.
    """

    def __init__(self, description: str, *, after_s: float = _AFTER_S) -> None:
        self._bar: Any = None
        self._after_s = after_s
        if "ipykernel" in sys.modules or sys.stderr.isatty():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about missing ipywidgets
                try:
                    from tqdm.auto import tqdm  # optional: tqdm
                except ImportError:
                    return
                self._bar = tqdm(desc=description, bar_format=_FORMAT, leave=False, delay=after_s)

    def show(self, done: int, total: int, at: str = "") -> None:
        """Show the progress and the current step, if the work takes long."""
        if self._bar is not None and total:
            self._bar.total = total
            self._bar.set_postfix_str(at, refresh=False)
            self._bar.n = done
            if self._is_due():
                self._draw()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            if self._is_due():
                # If an interrupt hits the drawing, tqdm does not know that the bar is visible, and
                # close() leaves it. After drawing it again, close() removes it.
                self._bar.delay = 0
                self._draw()
            self._bar.close()

    def _is_due(self) -> bool:
        return bool(self._bar.format_dict["elapsed"] >= self._after_s)

    def _draw(self) -> None:
        # Without tqdm's lock, which all bars share: refresh() would keep it after an interrupt.
        self._bar.refresh(nolock=True)


# The module path is that of this process; it does not contain the initial folder.
_BEGIN = (
    "import json, sys; order = json.loads(sys.argv[1]); sys.path[:] = order['path']; "
    "from doublecheck.run import pytest_run; "
    "pytest_run.main(order['report'], order['arguments'])"
)
_PATIENCE_S = 20.0  # seconds; an interrupted run still stops its double
_LAST_LINES = 8


class ChecksProcess:
    """A run of the checks with some pytest options. Use it in a with statement."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="doublecheck-")
        self._report = Path(self._folder.name, "report.json")
        self._printed = Path(self._folder.name, "printed.txt")
        order = {
            "path": [entry for entry in sys.path if entry],
            "arguments": list(arguments),
            "report": str(self._report),
        }
        with self._printed.open("wb") as printed:
            self._process = subprocess.Popen(  # noqa: S603 (this interpreter)
                [sys.executable, "-c", _BEGIN, json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                encoding="utf-8",
                env={**environ, "PY_COLORS": "0"},  # a notebook's kernel requests colours
                start_new_session=True,  # an interrupt of our process group does not reach it
            )

    @property
    def _channel(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def progress(self) -> Iterator[tuple[int, int, str]]:
        """Yield the number of finished checks, of all checks, and the next one's name."""
        for line in self._channel:
            ended, chosen, name = line.split(maxsplit=2)
            yield int(ended), int(chosen), name.strip()
        self._process.wait()

    def interrupt(self) -> None:
        """End the run early. Its report then says that it was interrupted."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def document(self) -> Mapping[str, Any]:
        """Return the report. Raise ChecksCrashedError if the process ended without one."""
        if not self._report.exists():
            printed = self._printed.read_text("utf-8", errors="replace").splitlines()
            lines = [line for line in printed if line.strip()]
            raise ChecksCrashedError(self._process.wait(), lines[-_LAST_LINES:])
        document: Mapping[str, Any] = json.loads(self._report.read_text("utf-8"))
        return document

    def __enter__(self) -> ChecksProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._folder.cleanup()

    def end(self) -> None:
        """Wait a short time until the run has ended by itself, then kill it."""
        self.interrupt()
        # after a second interrupt, do not wait any longer
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            self._process.wait(_PATIENCE_S)
        with suppress(ProcessLookupError, PermissionError):  # macOS denies it during the end
            # its fork server ends the kernels
            processes.send_to_group(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._channel.close()


def check_target(
    target: Target,
    *,
    only: str | None = None,
    level: str | None = None,
    strict_should: bool = False,
    on_begun: Callable[[ChecksProcess], object] = lambda _process: None,
    **of_the_run: Any,
) -> Report:
    """Check a platform and return the report. See ``doublecheck.check``.

    ``on_begun`` gets the process of the checks; ``of_the_run`` are fields of the target that the
    run sets.
    """
    require_runnable()
    require_consistent(level, strict_should)
    checked = from_target(target, level=level, **of_the_run)
    return run_checks(checked, only=only, strict_should=strict_should, on_begun=on_begun)


async def check_target_async(target: Target, **options: Any) -> Report:
    """Check a platform in a thread. A cancelled call waits until the checks have ended."""
    processes: list[ChecksProcess] = []
    context = contextvars.copy_context()
    check = functools.partial(check_target, target, **options, on_begun=processes.append)
    checks = asyncio.get_running_loop().run_in_executor(None, context.run, check)
    with transport.interruptible():
        try:
            return await asyncio.shield(checks)
        except asyncio.CancelledError:
            for process in processes:
                process.interrupt()
            await asyncio.wait({checks})
            checks.exception()  # the caller knows that they were interrupted
            raise


def require_runnable() -> None:
    """Raise DoubleCheckError if checks cannot run in a separate process here."""
    command.require_pytest()
    if not hasattr(os, "killpg"):
        raise DoubleCheckError(
            "check() must end the process of its checks with all its children, which this "
            "system does not support. Use 'doublecheck run' instead."
        )


def require_consistent(level: str | None, strict_should: bool) -> None:
    """Raise TargetError if an argument contradicts the level."""
    from doublecheck.contracts import verdicts  # optional: pytest

    verdicts.require_consistent(level, strict_should, lambda name: name.replace("-", "_"))


def run_checks(
    subject: Subject,
    *,
    only: str | None,
    strict_should: bool,
    on_begun: Callable[[ChecksProcess], object] = lambda _process: None,
) -> Report:
    """Run the checks. Raise InterruptedChecksError if they are interrupted."""
    from doublecheck.reports.document import from_document  # optional: pytest

    choice = [] if only is None else command.selection(only)
    strict = ["--platform-strict-should"] if strict_should else []
    arguments = [*subject.arguments, *strict, *choice]
    with ChecksProcess(arguments, subject.environ) as process:
        on_begun(process)
        try:
            with Bar("contract checks") as bar:
                for ended, chosen, name in process.progress():
                    bar.show(ended, chosen, name)
        except KeyboardInterrupt:
            process.end()
        report = dataclasses.replace(
            from_document(process.document()), name=subject.name, kind=subject.kind, url=subject.url
        )
    if report.run.interrupted:
        raise InterruptedChecksError(report)
    if not report.run.checks:
        raise command.nothing_matches(f"only={only!r}", "only='INV'")
    return report


_OURS = ("DOUBLECHECK_", "PLATFORM_")
_PYTESTS = ("PYTEST_", "JPY_")  # from a pytest run or a kernel in this process


@dataclass(frozen=True)
class Subject:
    """A platform, as the pytest options and the environment that describe it.

    ``url`` is None for a double that the run itself starts.
    """

    name: str
    kind: Kind
    url: str | None
    arguments: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)


def from_configuration(target: str | None, **of_the_run: Any) -> Subject:
    """Return the subject that the configuration names, by default a double.

    ``of_the_run`` are options of ``doublecheck run`` by name; None leaves one unchanged. Raises an
    error if the platform cannot be used.
    """
    options = {"target": target, **{name: value or None for name, value in of_the_run.items()}}
    run = command.RunOptions(options, spelled=str)
    command.require_target(run)
    return Subject(run.plan.name, run.plan.kind, run.plan.value("url"), run.arguments(), _environ())


def from_target(target: Target, **of_the_run: Any) -> Subject:
    """Return the subject for an open platform or a URL. Raise an error if it cannot be used.

    ``of_the_run`` are fields of the target that the run sets; None leaves one unchanged.
    """
    open_target.require_answer(target)
    if target.credentials is not None and target.credentials.session_token is not None:
        raise TargetError(
            f"The checks cannot use the session token of the key pair for {target.url}; "
            "pass a permanent key pair."
        )
    target = replace(target, **{name: value for name, value in of_the_run.items() if value})
    inherited = {name: value for name, value in _environ().items() if not name.startswith(_OURS)}
    environ = {**inherited, **dict(_keys(target))}
    return Subject(target.name, target.kind, target.url, list(_options(target)), environ)


def target_of(platform: object) -> Target:
    """Return the target of an open platform. Raise ArgumentError if it is not a platform."""
    target = getattr(platform, "target", None)
    if not isinstance(target, Target):
        raise ArgumentError(
            f"{platform!r:.80} is not a platform: pass a URL, or what connect() returned."
        )
    return target


def _options(target: Target) -> Iterator[str]:
    yield "--platform-project="
    yield f"--platform-target={target.kind}"
    for name, field_name in FIELDS.items():
        if field_name == "offered" and target.offers_assumed:
            continue
        option, value = f"--platform-{name.replace('_', '-')}", getattr(target, field_name)
        if value is True:
            yield option
        elif value:
            yield f"{option}={','.join(sorted(value)) if isinstance(value, frozenset) else value}"


def _keys(target: Target) -> Iterator[tuple[str, str]]:
    yield from _pair(target.credentials, "")
    yield from _pair(target.restricted, "restricted_")
    named = {variable("api_key"): target.api_key, variable("other_api_key"): target.other_key}
    of_surfaces = {variable_of(surface): key for surface, key in target.api_keys.items()}
    for name, key in (named | of_surfaces).items():
        if key is not None:
            yield name, key.reveal()


def _pair(credentials: Credentials | None, prefix: str) -> Iterator[tuple[str, str]]:
    if credentials is not None:
        yield variable(f"{prefix}access_key"), credentials.access_key
        yield variable(f"{prefix}secret_key"), credentials.secret_key


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_PYTESTS)}
