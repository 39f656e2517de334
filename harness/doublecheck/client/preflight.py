"""Before the first check: find out whether a platform answers soon at the addresses of a target.

This sends up to three requests to an address, takes a few seconds at most, and follows no redirect.
So a run against a platform that is down or hangs, or against another server, ends at once with a
reason, instead of one timeout per check. One answer is enough for an address: if another surface
hangs, its checks fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urljoin, urlsplit

import httpx

from agentdouble.core import invoke_tool
from doublecheck.client import loop_thread, transport
from doublecheck.errors import DoubleCheckError, NoAnswerError, WrongAddressError
from doublecheck.target.facts import Surface
from doublecheck.target.target import Target
from doublecheck.values.executions import OnOutput
from doublecheck.wire import calls
from doublecheck.wire.event_stream import is_stream

PATIENCE_S = 10.0
_MARGIN_S = 1.0
_READ_BYTES = 64 * 1024
_GRACE_S = 2.0  # for the other surfaces, after one has answered
PROBES: Mapping[Surface, str] = {
    "application": "/ping",
    "api_server": "/list-apps",
    "control_plane": f"/?Action={invoke_tool.ACTION}&Version={invoke_tool.VERSION}",
    "mcp": "/mcp",
    "a2a": "/.well-known/agent-card.json",
}
_SLOW: frozenset[Surface] = frozenset({"mcp", "a2a"})  # a double imports an SDK before it answers
_BEHIND: Mapping[Surface, Surface] = {"sandbox": "control_plane", "services": "mcp"}


def problems(target: Target, patience_s: float | None = None) -> Mapping[Surface, DoubleCheckError]:
    """Return the error of each surface that does not answer as a platform.

    After one surface of an address has answered, the others get two more seconds. Raises
    TargetError for certificates that cannot be read.
    """
    by_address: dict[str, list[Surface]] = {}
    for surface in PROBES:
        if target.offers(surface):
            by_address.setdefault(target.at(surface), []).append(surface)
    return _ask(target, list(by_address.values()), patience_s)


def problem(
    target: Target, surface: Surface, patience_s: float | None = None
) -> DoubleCheckError | None:
    """Return the error if a surface does not answer as a platform, or None."""
    surface = probed(surface)
    if surface not in PROBES:
        return None
    return _ask(target, [[surface]], patience_s).get(surface)


def none_left(target: Target, problems: Mapping[Surface, DoubleCheckError]) -> bool:
    """Whether every surface that can be probed has a problem."""
    return bool(problems) and problems.keys() >= set(map(probed, target.offered)) & PROBES.keys()


def probed(surface: Surface) -> Surface:
    """Return the surface to probe for another: the control plane represents the sandbox."""
    return _BEHIND.get(surface, surface)


def _ask(
    target: Target, addresses: Sequence[Sequence[Surface]], patience_s: float | None
) -> Mapping[Surface, DoubleCheckError]:
    """Send all probes at once, in a thread with a loop of its own."""
    patience_s = PATIENCE_S if patience_s is None else patience_s
    options = {**transport.options(target, patience_s), "timeout": patience_s}

    async def ask(_on_output: OnOutput) -> Mapping[Surface, DoubleCheckError]:
        async with transport.client_async(**options) as client:
            results = await asyncio.gather(
                *(_ask_address(client, target, surfaces, patience_s) for surfaces in addresses)
            )
        return {surface: error for errors in results for surface, error in errors.items()}

    return loop_thread.run(ask, lambda _output: None)


async def _ask_address(
    client: httpx.AsyncClient, target: Target, surfaces: Sequence[Surface], patience_s: float
) -> Mapping[Surface, DoubleCheckError]:
    """Return the problems of the surfaces at one address."""
    quick = [surface for surface in surfaces if surface not in _SLOW]
    requests = {
        surface: calls.request(target, "GET", PROBES[surface], surface=surface)
        for surface in quick or surfaces[:1]
    }
    tasks = {
        asyncio.ensure_future(_probe(client, request)): surface
        for surface, request in requests.items()
    }
    pending, answers = set(tasks), dict[Surface, DoubleCheckError | None]()
    silent: dict[Surface, DoubleCheckError] = {
        surface: NoAnswerError(request.url, "its answer is incomplete")
        for surface, request in requests.items()
    }
    while pending:
        wait_s = _GRACE_S if answers else patience_s + _MARGIN_S
        done, pending = await asyncio.wait(
            pending, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            break
        for task in done:
            try:
                answers[tasks[task]] = task.result()
            except DoubleCheckError as error:
                silent[tasks[task]] = error
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    wrong = {surface: error for surface, error in answers.items() if error is not None}
    if len(wrong) < len(answers):  # the checks of a surface report that it hangs
        return wrong
    problems = wrong or silent
    first = next(iter(problems.values()))
    return {surface: problems.get(surface, first) for surface in surfaces}


async def _probe(client: httpx.AsyncClient, request: calls.Request) -> DoubleCheckError | None:
    """Return the error if something other than a platform answers. Raise if there is no answer."""
    url = request.url
    with transport.translated(url):
        async with client.stream(**transport.arguments(request)) as response:
            if response.has_redirect_location:
                return WrongAddressError(url, f"redirects to {_redirect_target(response)}")
            read = b""
            if not is_stream(response):  # such an answer may be endless
                async for chunk in response.aiter_bytes():
                    read += chunk
                    if len(read) > _READ_BYTES:
                        break
            if _is_page(response, read):
                return WrongAddressError(url, "answers with a web page")
    return None


def _is_page(response: httpx.Response, content: bytes) -> bool:
    """Whether an answer is a web page, and not text that is declared as one."""
    declared = calls.media_type(response) == "text/html" and response.is_success
    return declared and content.lstrip().startswith(b"<")


def _redirect_target(response: httpx.Response) -> str:
    """Return the target of a redirect, without the parts that may contain a secret."""
    url = urljoin(str(response.request.url), response.headers["location"])
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
