"""unknowns(): the ledger as a value."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import doublecheck
from agentdouble.core import profiles
from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.calibration import findings
from doublecheck.calibration.probing import Probing
from doublecheck.client.doubles import serving_double


def test_the_ledger_shows_relied_on_unknowns() -> None:
    """It has the current answer and the alternatives of each."""
    with serving_double(unknowns={"U-PROBE-BODIES": "text"}) as target, Platform(target) as double:
        before = doublecheck.unknowns(double)
        double.ping()
        after = double.unknowns()

    assert {} == dict(before.relied_on)
    assert "text" == after.relied_on["U-PROBE-BODIES"].answer
    assert "object" in after["U-PROBE-BODIES"].alternatives
    count = len(after.relied_on)
    assert f"<Unknowns: {len(after)}, {count} relied on>" == repr(after)
    assert f"{count} relied on" in after._repr_mimebundle_()["text/html"]


def test_without_a_double_the_ledger_has_the_defaults() -> None:
    unknown = doublecheck.unknowns()["U-SIGNING"]

    assert "<Unknown U-SIGNING: hmac-sha256>" == repr(unknown)
    assert unknown.question in unknown._repr_mimebundle_()["text/html"]


def test_the_ledger_of_an_async_platform_is_the_same() -> None:
    """As with check(), twin() and calibrate(), the call is not awaited."""
    with serving_double() as target:
        assert {*doublecheck.unknowns()} == {*doublecheck.unknowns(AsyncPlatform(target))}


def test_unknowns_refuses_other_values() -> None:
    with pytest.raises(doublecheck.errors.ArgumentError, match="5 is not a platform: pass a URL"):
        doublecheck.unknowns(5)  # type: ignore[arg-type]


def test_a_live_platform_has_no_ledger() -> None:
    live = Platform(Target("http://127.0.0.1:9", "live"))
    with live, pytest.raises(doublecheck.errors.NotADoubleError, match="ledger of unknowns"):
        doublecheck.unknowns(live)


def test_findings_become_a_profile(tmp_path: Path) -> None:
    """Their HTML includes unknowns that are not settled."""
    with (
        serving_double(unknowns={"U-PROBE-BODIES": "text"}) as target,
        doublecheck.Platform(target) as platform,
    ):
        findings = doublecheck.calibrate(platform, only=["U-PROBE-BODIES", "U-INVOKE-ERROR"])
        written = findings.write(tmp_path / "profile.toml")

    assert f"<Findings of {target.url}: 2 unknowns, 1 settled>" == repr(findings)
    assert (type(findings), target.url) == (type(findings[:1]), findings[:1].target)
    assert {"U-PROBE-BODIES": "text"} == profiles.read(written).unknowns
    html = findings._repr_mimebundle_()["text/html"]
    assert "U-PROBE-BODIES" in html
    assert "not settled" in html


def test_an_interrupted_calibration_keeps_its_findings(
    platform: doublecheck.Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has them."""

    def interrupted(_: Probing) -> str:
        raise KeyboardInterrupt

    last = dataclasses.replace(findings.PROBES["U-SESSION-DELETE"], look=interrupted)
    monkeypatch.setitem(findings.PROBES, "U-SESSION-DELETE", last)

    with pytest.raises(doublecheck.errors.InterruptedCalibrationError, match="1 of 2") as raised:
        doublecheck.calibrate(platform, only=["U-PROBE-BODIES", "U-SESSION-DELETE"])

    assert ["U-PROBE-BODIES"] == [finding.unknown for finding in raised.value.findings]


def test_an_unknown_id_is_an_error(platform: doublecheck.Platform) -> None:
    """The error suggests the nearest one."""
    with pytest.raises(doublecheck.errors.CalibrationError, match="Did you mean U-PROBE-BODIES"):
        doublecheck.calibrate(platform, only=["U-PROBE-BODY"])
