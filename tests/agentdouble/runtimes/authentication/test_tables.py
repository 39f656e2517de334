from __future__ import annotations

from typing import Any

import pytest

from agentdouble.errors import SettingsError
from agentdouble.runtimes import definition
from agentdouble.runtimes.authentication.authorizers import Authorizer

DISCOVERY = "https://issuer.example/.well-known/openid-configuration"


def read(table: dict[str, Any]) -> Authorizer:
    """Return the authorizer of a runtime with this table."""
    read = definition.declare({"name": "one", "command": "true", "authorizer": table})
    assert read.authorizer
    return read.authorizer


def test_keys_have_names() -> None:
    """Callers are identified by them."""
    named = {"name": "billing", "secret": "two"}
    authorizer = read({"keys": ["one", named, "three"], "location": "Query", "name": "key"})

    assert [("default", "one"), ("billing", "two"), ("key-3", "three")] == [
        (key.name, key.secret) for key in authorizer.keys
    ]
    assert "two" not in repr(authorizer)


def test_audience_may_be_a_string_or_a_list() -> None:
    """As in a token."""
    table = {"discovery_url": DISCOVERY, "allowed_clients": ["client"]}

    assert [("api",), ("api",)] == [
        read({**table, "audience": audience}).audience for audience in ("api", ["api"])
    ]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "either keys or a discovery_url"),
        ({"keys": ["sesame"], "audience": "me"}, "belong to a discovery_url"),
        ({"keys": ["sesame open"]}, "should match pattern"),
        ({"keys": ["sesame"], "location": "Cookie"}, "'Header' or 'Query'"),
        ({"keys": ["sesame"], "name": "User_Id"}, "has its own use"),
        ({"discovery_url": "http://issuer.example/"}, "neither an https address"),
        ({"kyes": ["sesame"]}, "Did you mean keys?"),
    ],
)
def test_invalid_tables_are_refused_without_showing_keys(table: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(table)

    assert words in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_stored_authorizer_round_trips() -> None:
    """Keys included, so that callers are accepted after a restart."""
    authorizer = {"keys": ["one", {"name": "ann", "secret": "two"}]}
    table = {"name": "one", "command": ["true"], "authorizer": authorizer}
    definition_ = definition.declare(table)

    assert definition_ == definition.declare(definition_.table())
