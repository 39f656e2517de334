from __future__ import annotations

import re

import pytest

from agentdouble.mcp_services.toolsets.listing import is_shortened, merged, split

pytestmark = pytest.mark.libraries


@pytest.mark.parametrize(
    ("service", "tool"),
    [
        ("weather", "forecast"),
        ("a.b-c", "d_e"),
        ("a", "_b"),
        ("a_", "b"),
        ("a__b", "c"),
        ("a", "b__c"),
        ("s" * 128, "t"),
    ],
)
def test_a_name_leads_back_to_its_service_and_tool(service: str, tool: str) -> None:
    """Whatever the two are made of."""
    name = merged(service, tool)

    assert (service, tool) == split(name, ["other", "a_b", service])
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", name)


def test_names_that_look_alike_stay_apart() -> None:
    """The separator may be in either part."""
    pairs = [("a", "b__c"), ("a__b", "c"), ("a", "_b"), ("a_", "b"), ("a_b", "c"), ("a", "b_c")]

    assert "a__b__c" == merged("a", "b__c")
    assert len(pairs) == len({merged(*pair) for pair in pairs})


def test_a_long_name_ends_in_a_digest() -> None:
    """So that two that begin alike differ."""
    one, other = (merged("service", "t" * 127 + end) for end in "ab")

    assert (128, 128) == (len(one), len(other))
    assert one != other
    assert is_shortened(one)
    assert not is_shortened(merged("service", "t"))


def test_a_name_of_no_service_is_not_split() -> None:
    """Neither one that lacks the separator."""
    assert split("weather", ["weather"]) is None
    assert split("rain__x", ["weather"]) is None
