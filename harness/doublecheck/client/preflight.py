"""Before the first check: test whether a platform answers soon at the addresses of a target.

This sends up to three requests to an address, takes some seconds at most, and follows no redirect.
So a run against a platform that is down or hangs, or against another server, ends at once with a
reason, and not after a time limit for each check. One answer is enough for an address: if another
surface hangs, its checks fail.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import httpx

from agentdouble import invoke_tool
from doublecheck.client import transport
from doublecheck.errors import (
    CredentialsRefusedError,
    DoubleCheckError,
    NoAnswerError,
    RefusedError,
    WrongAddressError,
)
from doublecheck.target.facts import Surface
from doublecheck.target.target import Target
from doublecheck.wire import calls, sandbox
from doublecheck.wire.event_stream import is_stream
from doublecheck.wire.exchanges import redact, secrets_of

if TYPE_CHECKING:
    from doublecheck.target.target import Target

PATIENCE_S = 10.0
_MARGIN_S = 1.0
_READ_BYTES = 64 * 1024
_GRACE_S = 2.0  # for the other surfaces, after one has answered
_PROBES: Mapping[Surface, str] = {
    "application": "/ping",
    "api_server": "/list-apps",
    "control_plane": f"/?Action={invoke_tool.ACTION}&Version={invoke_tool.VERSION}",
    "mcp": "/mcp",
    "a2a": "/.well-known/agent-card.json",
}
_SLOW: frozenset[Surface] = frozenset({"mcp", "a2a"})  # a double imports an SDK before it answers
_BEHIND: Mapping[Surface, Surface] = {"sandbox": "control_plane", "services": "mcp"}


def problems(target: Target, patience_s: float | None = None) -> Mapping[Surface, DoubleCheckError]:
    """Return, for each surface that does not answer as a platform, the error.

    After one surface of an address has answered, the others get two more seconds. Raises
    TargetError for certificates that cannot be read.
    """
    by_address: dict[str, list[Surface]] = {}
    for surface in _PROBES:
        if target.offers(surface):
            by_address.setdefault(target.at(surface), []).append(surface)
    asked = [_Address(target, surfaces) for surfaces in by_address.values()]
    _probe_all(target, asked, patience_s)
    return {surface: found for one in asked for surface, found in one.problems().items()}


def problem(
    target: Target, surface: Surface, patience_s: float | None = None
) -> DoubleCheckError | None:
    """Return the error if a surface does not answer as a platform, or None."""
    if probed(surface) not in _PROBES:
        return None
    asked = _Address(target, [probed(surface)])
    _probe_all(target, [asked], patience_s)
    return asked.problems().get(probed(surface))


def none_left(target: Target, found: Mapping[Surface, DoubleCheckError]) -> bool:
    """Whether every surface that can be probed has a problem."""
    return bool(found) and found.keys() >= set(map(probed, target.offered)) & _PROBES.keys()


def probed(surface: Surface) -> Surface:
    """Return the surface to probe for another: the control plane represents the sandbox."""
    return _BEHIND.get(surface, surface)


def _probe_all(target: Target, asked: Sequence[_Address], patience_s: float | None) -> None:
    """Send all probes at once; the time limit also applies to answers that arrive slowly."""
    patience_s = PATIENCE_S if patience_s is None else patience_s
    options = {**transport.options(target, patience_s), "timeout": patience_s}
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()
    with transport.client(**options) as client:
        for probe in [probe for one in asked for probe in one.probes]:
            threading.Thread(target=probe.run, args=(client, ended), daemon=True).start()
        with suppress(queue.Empty):
            while not all(one.ended for one in asked):
                answered = all(one.answered or one.ended for one in asked)
                ended.get(timeout=_GRACE_S if answered else patience_s + _MARGIN_S)
        for error in (probe.unexpected for one in asked for probe in one.probes):
            if error is not None:
                raise error


class _Address:
    """The surfaces at one address, and the request that probes them."""

    def __init__(self, target: Target, surfaces: Sequence[Surface]) -> None:
        self._surfaces = surfaces
        quick = [one for one in surfaces if one not in _SLOW]
        self.probes = [_Probe(target, one) for one in quick or surfaces[:1]]

    @property
    def answered(self) -> bool:
        return any(one.answered for one in self.probes)

    @property
    def ended(self) -> bool:
        return all(one.ended for one in self.probes)

    def problems(self) -> Mapping[Surface, DoubleCheckError]:
        heard = [one for one in self.probes if one.answered or not self.answered]
        told = {one.surface: one.problem for one in heard}
        found = {surface: problem for surface, problem in told.items() if problem is not None}
        if len(found) < len(told):
            return found
        first = next(iter(found.values()))
        return {surface: found.get(surface, first) for surface in self._surfaces}


class _Probe:
    """One request and the problem that it found."""

    def __init__(self, target: Target, surface: Surface) -> None:
        self.surface = surface
        self._request = calls.request(target, "GET", _PROBES[surface], surface=surface)
        self.answered = False
        self.ended = False
        self.unexpected: Exception | None = None
        self.problem: DoubleCheckError | None = self._no_answer("its answer is incomplete")

    def run(self, client: httpx.Client, ended: queue.SimpleQueue[None]) -> None:
        try:
            with transport.translated(self._request.url):
                self.problem = self._wrong_address(client)
                self.answered = True
        except DoubleCheckError as error:
            self.problem = error
        except Exception as error:  # of a test run that forbids sockets, or of a closed client
            self.unexpected = error
        self.ended = True
        ended.put(None)

    def _wrong_address(self, client: httpx.Client) -> DoubleCheckError | None:
        url = self._request.url
        with client.stream(**transport.arguments(self._request)) as response:
            if response.has_redirect_location:
                return WrongAddressError(url, f"redirects to {_redirect_target(response)}")
            if calls.media_type(response) == "text/html" and response.is_success:
                return WrongAddressError(url, "answers with a web page")
            if not is_stream(response):  # such an answer need not end
                _read(response)
        return None

    def _no_answer(self, reason: str) -> DoubleCheckError:
        return NoAnswerError(self._request.url, reason)


def _read(response: httpx.Response) -> None:
    """Read an answer as far as it is of any use: one that breaks off, or drips, is no answer."""
    read = 0
    for chunk in response.iter_raw():
        read += len(chunk)
        if read > _READ_BYTES:
            return


def _redirect_target(response: httpx.Response) -> str:
    """Return the target of a redirect, without the parts that may contain a secret."""
    url = urljoin(str(response.request.url), response.headers["location"])
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


_NO_TOOL = invoke_tool.RunCode(  # no tool has this id, so no code runs
    "t-doublecheck-nobody-has-this", "doublecheck_doublecheck", "1"
)


def require(target: Target, variables: tuple[str, str]) -> None:
    """Raise CredentialsRefusedError if the control plane refuses the key pair in these variables.

    Only HTTP 401 in the control plane's own envelope counts, because gateways refuse signed
    requests for other reasons. If there is no answer, the checks report that.
    """
    if "control_plane" in target.problems or target.credentials is None:
        return
    if not target.offers("control_plane") and not target.offers("sandbox"):
        return
    refusal = _refusal(target)
    if refusal is not None:
        reason = redact(str(refusal), secrets_of(target))
        raise CredentialsRefusedError(target.control_plane, reason, variables)


def _refusal(target: Target) -> RefusedError | None:
    """Return the error with which the control plane refuses a key pair, or None."""
    request = sandbox.signed(target, _NO_TOOL.body(), transport.signing_time())
    try:
        with (
            transport.translated(request.url),
            transport.client(**transport.options(target, PATIENCE_S)) as client,
        ):
            sandbox.read_envelope(client.request(**transport.arguments(request)))
    except RefusedError as error:
        return error if error.status == httpx.codes.UNAUTHORIZED else None
    except DoubleCheckError:
        return None
    return None
