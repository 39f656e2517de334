"""unknowns(): the ledger as a value."""

from __future__ import annotations

import pytest

import doublecheck
from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.client.open_target import serving_double


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
