from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import ReportError
from doublecheck.reports import document
from tests.doublecheck.reports.examples import DOUBLE, STAGING

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("reports", [[DOUBLE], [STAGING], [DOUBLE, STAGING]])
def test_a_report_survives_a_round_trip_through_json(tmp_path: Path, reports: list[Any]) -> None:
    """The document conforms to its schema."""
    path = tmp_path / "report.json"
    path.write_text(document.render(reports), "utf-8")

    jsonschema.validate(json.loads(path.read_text("utf-8")), document.schema())
    assert reports == document.read(path)


def test_findings_name_their_clauses_and_checks() -> None:
    finding = document.to_document(STAGING)["findings"][1]

    assert {
        "cause": "it did not answer",
        "outcome": "error",
        "clauses": ["PRB-01"],
        "checks": ["test_x.py::test_d"],
    } == finding


def test_the_schema_lists_exactly_the_verdicts() -> None:
    allowed = document.schema()["$defs"]["verdict"]["enum"]

    assert sorted(verdict.value for verdict in Verdict) == sorted(allowed)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["format"], "junit/1", "it does not have the format doublecheck-report/1"),
        (["target", "kind"], "moon", "'moon' is missing or unknown"),
        (["clauses", 0, "id"], "XYZ-01", "'XYZ-01' is missing or unknown"),
        (["clauses", 0, "checks", 0, "verdict"], "odd", "'odd' is not a valid Verdict"),
    ],
)
def test_a_file_without_a_report_is_refused(
    tmp_path: Path, keys: list[Any], value: Any, message: str
) -> None:
    """The message names the file and the reason."""
    broken = place = document.to_document(DOUBLE)
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path = tmp_path / "report.json"
    path.write_text(json.dumps(broken))

    with pytest.raises(ReportError) as refused:
        document.read(path)

    assert str(refused.value).startswith(f"{path} is not a report: {message}")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 100_000, b"[]"])
def test_rubbish_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)

    with pytest.raises(ReportError, match="is not a report: "):
        document.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The message has the system's reason."""
    with pytest.raises(ReportError, match=r"absent\.json cannot be read: No such file"):
        document.read(tmp_path / "absent.json")
