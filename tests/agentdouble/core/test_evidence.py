from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from agentdouble.core import evidence, ledger, profiles
from agentdouble.core.evidence import KINDS, Evidence
from agentdouble.errors import LedgerError
from tests.readme.pages import ROOT

DAY = dt.date(2026, 11, 29)
GOOD = {"kind": "client asserts", "source": "veadk 1.1.19: session.py", "date": DAY, "says": "asks"}
GUESS = {"kind": "none", "says": "a guess"}
PAGES = ("emulator/docs/coverage.md",)


def test_every_unknown_has_evidence_with_its_source() -> None:
    """What has no source is a guess, and says so."""
    for unknown in ledger.unknowns().values():
        for it in unknown.evidence:
            if it.kind == "none":
                assert ("a guess", None, None) == (it.says, it.source, it.date), unknown.id
            else:
                assert all((it.source, it.date, it.says)), unknown.id


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**GOOD, "kind": "client says"}, "the kinds are measured on a deployment, specif"),
        ({"kind": "client asserts", "date": DAY, "says": "asks"}, "source is missing"),
        ({**GOOD, "source": " "}, "source is missing"),
        ({**GOOD, "source": "a real client"}, "the source names no version"),
        ({**GOOD, "says": ""}, "says is missing"),
        ({**GOOD, "date": "2026-11-29"}, "date must be a day"),
        ({**GOOD, "date": dt.datetime(2026, 11, 29)}, "date must be a day"),
        ({**GOOD, "answer": "other"}, "'other' is no alternative"),
        ({**GOOD, "sources": "x"}, "'sources' is none of kind, source"),
        ({**GUESS, "says": "a guess: clients name neither"}, 'it says "a guess" alone'),
        ({**GUESS, "source": "veadk 1.1.19"}, 'it says "a guess" alone'),
    ],
)
def test_wrong_evidence_is_refused_with_the_reason(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(LedgerError) as caught:
        evidence.parse("U-X", [entry, GUESS], ["sliding"])

    assert ("U-X", True) == (caught.value.unknown, message in str(caught.value))


@pytest.mark.parametrize("entries", ["a real client", ["a guess"], None, {}])
def test_evidence_that_is_not_a_list_of_tables_is_refused(entries: Any) -> None:
    with pytest.raises(LedgerError, match="U-X: evidence must be a list of tables with kind"):
        evidence.parse("U-X", entries, [])


@pytest.mark.parametrize("entries", [[], [{**GOOD, "answer": "sliding"}]])
def test_the_default_needs_evidence_or_is_a_guess(entries: list[dict[str, Any]]) -> None:
    with pytest.raises(LedgerError, match="U-X has no evidence for its default"):
        evidence.parse("U-X", entries, ["sliding"])


def test_an_answer_rests_on_its_strongest_evidence() -> None:
    """Evidence for other answers does not count."""
    found = [
        Evidence("client tolerates", "", "1"),
        Evidence("sample", "", "1"),
        Evidence("client asserts", "", "1", answer="sliding"),
    ]

    assert "sample" == evidence.strongest(found)
    assert "client asserts" == evidence.strongest(found, "sliding")
    assert "none" == evidence.strongest(found, "absolute")


def test_the_summary_counts_each_unknown_once() -> None:
    unknowns = ledger.unknowns().values()

    counts = {kind: sum(unknown.rests_on() == kind for unknown in unknowns) for kind in KINDS}

    assert len(unknowns) == sum(counts.values())
    text = ledger.Ledger().summary()
    assert f"leaves {len(unknowns)} behaviours open" in text
    assert f"on what a published client asserts for {counts['client asserts']}" in text
    assert f"is a guess for {counts['none']}" in text
    assert max(it.date for u in unknowns for it in u.evidence if it.date).isoformat() in text


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_state_the_current_counts(page: str) -> None:
    """After a change of the evidence: copy the last line of ``agentdouble unknowns`` into them."""
    text = " ".join((ROOT / page).read_text("utf-8").split())

    assert ledger.Ledger().summary() in text
    assert "`agentdouble unknowns`" in text


PROFILE = """
[unknowns]
U-PING-SLOW = "503"
U-TTL-DURING = "finishes"

[evidence.U-PING-SLOW]
answer = "503"
target = "https://agent.example.com"
date = "2026-12-01T22:40:00+00:00"
seen = "a slow ping was answered with 503"
"""


def test_a_settled_unknown_rests_on_the_deployment(tmp_path: Path) -> None:
    """It does, too, where a person has settled it by hand; a choice on top is none of it."""
    file = tmp_path / "profile.toml"
    file.write_text(PROFILE)

    followed = profiles.read(file).make_ledger({"U-TTL-PAUSED": "stops"})

    measured = Evidence(
        "measured on a deployment",
        "a slow ping was answered with 503",
        "https://agent.example.com",
        dt.date(2026, 12, 1),
    )
    assert measured == followed.evidence("U-PING-SLOW")[0]
    assert "measured on a deployment" == followed.rests_on("U-PING-SLOW")
    assert "measured on a deployment" == followed.rests_on("U-TTL-DURING")
    assert "none" == followed.rests_on("U-TTL-PAUSED")
    assert "is measured on a deployment for 2," in followed.summary()
    assert "(as of 2026-12-01)" in followed.summary()
