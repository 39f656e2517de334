from __future__ import annotations

from collections import Counter

import pytest

from doublecheck.contracts.clauses import Clause, clause, clauses, find, selection
from doublecheck.errors import ArgumentError

pytestmark = pytest.mark.smoke


def test_every_clause_of_the_specification_exists() -> None:
    """The groups have the sizes and the order of the specification."""
    groups = Counter(id_.partition("-")[0] for id_ in clauses())

    assert {
        "HST": 5,
        "INV": 9,
        "PRB": 7,
        "API": 18,
        "MCP": 6,
        "SVC": 3,
        "CTL": 8,
        "SBX": 12,
        "RUN": 3,
        "DEC": 6,
        "A2A": 5,
        "AUT": 3,
    } == groups
    assert list(groups) == list(dict.fromkeys(id_[:3] for id_ in clauses()))


def test_a_clause_has_section_level_scope_and_text() -> None:
    expected = Clause(
        "INV-08",
        section="4.1",
        level="should",
        scope="wire",
        text="A body that is not JSON is refused with a 4xx status and a clear error.",
    )

    assert expected == find("INV-08")


def test_an_unknown_clause_id_is_an_error() -> None:
    """The error suggests the nearest id."""
    with pytest.raises(ArgumentError, match=r"There is no clause 'inv-05'. Did you mean INV-05\?"):
        clause("inv-05")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("RUN", "group:RUN"),
        ("INV or PRB-01", "group:INV or PRB-01"),
        ("not (API or MCP)", "not (group:API or group:MCP)"),
        ("U-RUN-ERROR or RUN-01 or run", "U-RUN-ERROR or RUN-01 or run"),
    ],
)
def test_group_names_expand_in_a_selection(names: str, expected: str) -> None:
    """Ids and lowercase names are left alone."""
    assert expected == selection(names)
