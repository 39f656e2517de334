"""calibrate(): find a platform's answers to unknowns from Python."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import doublecheck
from agentdouble.core import profiles
from doublecheck.calibration import findings
from doublecheck.calibration.probing import Probing
from doublecheck.client.open_target import serving_double


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
