"""Run the probes on a platform, one after the other, and collect their results."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent import futures
from pathlib import Path

from agentdouble.core import ledger
from agentdouble.core.ledger import Unknown
from agentdouble.errors import LedgerError
from doublecheck.calibration import api_server, control_plane, invocation, sessions  # noqa: F401 (each registers its probes)
from doublecheck.calibration.finding import Finding
from doublecheck.calibration.presence import absent_surfaces
from doublecheck.calibration.probe import PROBES as PROBES
from doublecheck.calibration.probe import Probe
from doublecheck.calibration.probing import NotSettledError, ProbePatience, Probing
from doublecheck.client._sync.platform import Platform
from doublecheck.core.notebook_repr import Series, counted
from doublecheck.errors import CalibrationError, DoubleCheckError
from doublecheck.target.facts import Surface
from doublecheck.wire.exchanges import HIDDEN, Exchange, redacted

_KEPT = 12  # the most exchanges stored for an unknown
_BODY_CHARS = 2000  # characters of a body
_KEY = re.compile(r'("(?:Key|ApiKey|Authorization)"\s*:\s*")[^"]*')
_UNSEEN = "its answers cannot be told apart from outside"
_UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError, StopIteration)


class Findings(Series[Finding], noun="finding", drawn_by="calibration.command.render"):
    """The findings of a calibration. ``target`` is the address of the platform."""

    target: str

    def __new__(cls, findings: Iterable[Finding] = (), *, target: str = "") -> Findings:
        series = super().__new__(cls, findings)
        series.target = target
        return series

    def _with(self, some: tuple[Finding, ...]) -> Findings:
        return Findings(some, target=self.target)

    @property
    def settled(self) -> tuple[Finding, ...]:
        """The findings with an answer."""
        return tuple(finding for finding in self if finding.settled)

    def write(self, path: str | Path) -> Path:
        """Write the answers to a new or existing profile and return its path.

        ``agentdouble serve --profile`` uses it. Raises CalibrationError and MissingExtraError.
        """
        from doublecheck.calibration import profile_file  # optional: tomlkit

        path = Path(path)
        profile_file.check(path)
        profile_file.write(path, self.target, self)
        return path

    def __repr__(self) -> str:
        return f"<Findings of {self.target}: {counted(len(self), 'unknown')}, {len(self.settled)} settled>"


def calibrate(
    platform: Platform,
    *,
    slow: bool = False,
    only: Collection[str] = (),
    patience: ProbePatience | None = None,
) -> Iterator[Finding]:
    """Yield the finding for each unknown that has alternatives, in the ledger's order.

    ``only`` holds the ids to probe; ``slow`` also runs the slow probes. ``patience`` is how time
    passes on the platform. A live platform must first show the surfaces that the probes ask. Raises
    CalibrationError for an unknown id, and AbsentSurfaceError if it shows none.
    """
    ids = ids_of(only)
    patience = patience or ProbePatience.of(platform)
    asked = [PROBES[id_] for id_ in ids if id_ in PROBES]
    asked = [probe for probe in asked if probe.why_not(platform.target, slow=slow) is None]
    absent = absent_surfaces(platform, {surface for probe in asked for surface in probe.surfaces})
    for id_, unknown in ledger.unknowns().items():
        if unknown.alternatives and id_ in ids:
            yield _finding(platform, unknown, PROBES.get(id_), slow, patience, absent)


def ids_of(only: Collection[str]) -> Collection[str]:
    """Return the unknowns to probe: by default all that have alternatives."""
    try:
        named = [ledger.find(id_).id for id_ in only]
    except LedgerError as error:
        raise CalibrationError(str(error)) from None
    return named or [id_ for id_, unknown in ledger.unknowns().items() if unknown.alternatives]


def _finding(
    platform: Platform,
    unknown: Unknown,
    probe: Probe | None,
    slow: bool,
    patience: ProbePatience,
    absent: Mapping[Surface, str],
) -> Finding:
    reason = _UNSEEN if probe is None else probe.why_not(platform.target, slow=slow)
    if probe is not None and reason is None:
        reason = next((absent[it] for it in probe.surfaces if it in absent), None)
    if probe is None or reason is not None:
        return Finding(unknown.id, reason=str(reason))
    platform.exchanges.clear()
    date = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    answer, reason = _probe_answer(platform, probe, patience)
    exchanges = tuple(evidence(exchange) for exchange in platform.exchanges[-_KEPT:])
    return Finding(unknown.id, answer, reason, date, exchanges)


def _probe_answer(platform: Platform, probe: Probe, patience: ProbePatience) -> tuple[str, str]:
    """Run a probe, clean up after it, and return its answer, or the reason for its absence."""
    with Probing(platform, patience) as at:
        try:
            return probe.look(at), ""
        except (NotSettledError, DoubleCheckError) as error:
            return "", str(error)
        except futures.TimeoutError:
            return "", "an answer timed out"
        except _UNEXPECTED as error:
            return "", f"an answer has an unexpected shape: {error!r:.200}"


def evidence(exchange: Exchange) -> str:
    """Return request and answer in a few lines, without their secrets."""
    safe = redacted(exchange)
    request = safe.request
    came = safe.error if safe.status is None else f"HTTP {safe.status}"
    parts = [f"{request.method} {request.url}", _text(request.content), f"-> {came}"]
    return "\n".join([part for part in (*parts, _text(safe.body)) if part])


def _text(content: bytes) -> str:
    text = _KEY.sub(rf"\1{HIDDEN}", content.decode(errors="replace"))
    printable = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    more = len(printable) - _BODY_CHARS
    return printable if more <= 0 else f"{printable[:_BODY_CHARS]}... ({more} more characters)"
