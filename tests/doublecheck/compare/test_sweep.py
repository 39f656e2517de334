"""Each answer to each unknown that the double can adopt is visible on the wire.

Probes observe most of them, with requests that also work on a deployment. The others have a
witness, which needs more than a deployment offers.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator, Settings, SimpleApp
from agentdouble.apps import simple
from agentdouble.core import ledger
from agentdouble.sandbox.browser import chromium
from doublecheck import Platform, Target
from doublecheck.calibration.findings import PROBES
from doublecheck.calibration.probing import ProbePatience, Probing
from doublecheck.contracts.conftest import REFERENCE_AGENTS
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from tests.agentdouble.calling import data_plane, http, send, signed
from tests.agentdouble.runtimes import small
from tests.agentdouble.runtimes.authentication.conftest import KEYS, mirror

pytestmark = pytest.mark.once

Witness = Callable[[Emulator, pytest.MonkeyPatch], str]

ANSWERS = [
    pytest.param(unknown.id, answer.name, id=f"{unknown.id}-{answer.name}")
    for unknown in ledger.unknowns().values()
    if any(answer.built for answer in unknown.alternatives)
    for answer in (unknown.default, *unknown.alternatives)
    if answer.built
]
IDLE_S = 10  # of the settings
gate = threading.Event()


def slow_ping(double: Emulator, patch: pytest.MonkeyPatch) -> str:
    """Return the answer to U-PING-SLOW, with a ping that lasts until a warning is logged."""
    patch.setattr(simple, "SLOW_PING_S", 0.05)
    gate.clear()
    handler, log = logging.Handler(), logging.getLogger(simple.__name__)
    handler.emit = lambda _record: gate.set()  # type: ignore[method-assign]
    log.addHandler(handler)
    try:
        status = http.get(f"{double.url}/runtimes/slow/ping").status_code
    finally:
        log.removeHandler(handler)
    return {503: "503", 200: "late"}[status]


def picture(double: Emulator, _patch: pytest.MonkeyPatch) -> str:
    """Return the answer to U-BROWSER-FORMAT."""
    _require_browser()
    answer = data_plane(double, "browser").get("/v1/browser/screenshot")
    return answer.headers["content-type"].removeprefix("image/")


def idle(double: Emulator, _patch: pytest.MonkeyPatch) -> str:
    """Return the answer to U-SCALE-IDLE, from whether an idle runtime stopped on time."""
    at = f"{double.url}/runtimes/answering/"
    before = http.get(at).text
    double.clock.advance(dt.timedelta(seconds=IDLE_S))
    return "5-minutes" if http.get(at).text == before else "settings"


def identity_headers(double: Emulator, _patch: pytest.MonkeyPatch) -> str:
    """Return the answer to U-IDENTITY-HEADERS, as an application sees it."""
    bearer = {"Authorization": f"Bearer {KEYS[0]['secret']}"}
    names = {
        name
        for name, _ in http.get(f"{double.url}/runtimes/keyed/", headers=bearer).json()["headers"]
    }
    if "x-ve-tip-token" not in names:
        return "x-agentdouble-identity"
    return "tip-token" if "x-agentdouble-identity-kind" in names else "tip-token-alone"


def many(double: Emulator, _patch: pytest.MonkeyPatch) -> str:
    """Return the answer to U-LIMITS, from more writes of tools than a second allows."""
    with double.clock.freeze():
        statuses = {
            send(signed(double, {}, action="UpdateTool")).status_code
            for _ in range(Settings().tool_rate_per_s + 1)
        }
    double.clock.reset()
    return "rates" if 429 in statuses else "bodies"


def _require_browser() -> None:
    if chromium.find(None) is None:
        pytest.skip(f"needs Chromium: {chromium.INSTALL}")


WITNESSES: dict[str, Witness] = {
    "U-BROWSER-FORMAT": picture,
    "U-IDENTITY-HEADERS": identity_headers,
    "U-LIMITS": many,
    "U-PING-SLOW": slow_ping,
    "U-SCALE-IDLE": idle,
}


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A double with the reference applications, a slow ping and a runtime."""
    answering = small.table(tmp_path_factory.mktemp("runtimes") / "answering")
    slow = SimpleApp("slow")

    @slow.entrypoint
    async def entrypoint(payload: dict, headers: dict) -> str:  # type: ignore[type-arg]
        return "slow"

    @slow.ping
    def ping() -> str:
        return "late" if gate.wait(20) else "never noticed"

    with Emulator(
        *reference_apps(),
        slow,
        agents=Path(REFERENCE_AGENTS),
        runtimes=[answering, mirror("keyed", {"keys": KEYS})],
        runtime_idle_s=IDLE_S,
    ) as double:
        yield double


@pytest.fixture(scope="module")
def platform(double: Emulator) -> Iterator[Platform]:
    """A client of the double."""
    with Platform(Target.of(double, reference_app=True)) as platform:
        yield platform


@pytest.mark.slow
@pytest.mark.parametrize(("id_", "answer"), ANSWERS)
def test_an_answer_is_visible_on_the_wire(
    double: Emulator, platform: Platform, id_: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe or a witness recognises it."""
    assert id_ in PROBES or id_ in WITNESSES, (
        f"{id_} has no probe: add one in harness/doublecheck/calibration/ (see probe.py), or a "
        "witness in WITNESSES"
    )
    platform._choose({id_: answer})
    try:
        if id_ in WITNESSES:
            observed = WITNESSES[id_](double, monkeypatch)
        else:
            with Probing(platform, ProbePatience.of(platform)) as at:
                observed = PROBES[id_].look(at)
    finally:
        platform._choose({})

    assert answer == observed


def test_every_unknown_with_alternatives_has_a_probe_or_a_witness() -> None:
    """None has both, and no other unknown has one."""
    with_alternatives = {
        unknown.id
        for unknown in ledger.unknowns().values()
        if any(answer.built for answer in unknown.alternatives)
    }

    required = {"U-SIGNING"}  # a probe tells whether a platform asks for signatures at all
    assert with_alternatives | required == PROBES.keys() | WITNESSES.keys()
    assert not PROBES.keys() & WITNESSES.keys()
