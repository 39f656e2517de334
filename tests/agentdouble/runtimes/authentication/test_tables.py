from __future__ import annotations

from typing import Any

import pytest

from agentdouble.errors import SettingsError
from agentdouble.runtimes import definition
from agentdouble.runtimes.authentication import ApiKey, Authorizer, JwtAuth, KeyAuth

DISCOVERY = "https://issuer.example/.well-known/openid-configuration"


def read(table: dict[str, Any]) -> Authorizer | None:
    """Return what a runtime with that table asks its callers for."""
    return definition.read({"name": "one", "command": "true", "authorizer": table}).authorizer


def test_a_key_stands_in_the_file_or_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a name by which its callers go."""
    monkeypatch.setenv("SOME_KEY", "from-outside")
    named = {"name": "billing", "secret_from": "SOME_KEY"}
    table = {"keys": ["one", named], "key_from": "SOME_KEY", "location": "Query", "name": "key"}

    assert (
        KeyAuth(
            (
                ApiKey("one", "default"),
                ApiKey("from-outside", "billing"),
                ApiKey("from-outside", "key-3"),
            ),
            "Query",
            "key",
        )
    ) == read(table)


def test_an_audience_is_one_or_several() -> None:
    """As in a token."""
    expected = JwtAuth(DISCOVERY, ("client",), ("api",))
    table = {"discovery_url": DISCOVERY, "allowed_clients": ["client"]}

    assert [expected, expected] == [read({**table, "audience": one}) for one in ("api", ["api"])]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "either keys (or key_from) or a discovery_url"),
        ({"keys": ["sesame"], "discovery_url": DISCOVERY}, "either keys"),
        ({"keys": ["sesame"], "audience": "me"}, "belong to a discovery_url"),
        ({"keys": ["sesame open"]}, "printable ASCII"),
        ({"keys": [""]}, "printable ASCII"),
        ({"keys": ["sesame"], "location": "Cookie"}, "not in 'Cookie'"),
        ({"keys": ["sesame"], "name": "bad name"}, "no name of a header"),
        ({"keys": ["sesame"], "name": "User_Id"}, "has its own use"),
        ({"keys": "sesame"}, "runtimes.authorizer.keys"),
        ({"keys": [{"name": "a", "secret": "sesame", "secret_from": "B"}]}, "either a secret"),
        ({"key_from": "NO_SUCH_VARIABLE"}, "'NO_SUCH_VARIABLE' holds no key"),
        ({"discovery_url": "http://issuer.example/"}, "neither an https address"),
        ({"discovery_url": "http://127.0.0.1:port/"}, "neither an https address"),
        ({"discovery_url": "file:///etc/passwd"}, "neither an https address"),
        ({"kyes": ["sesame"]}, "Did you mean keys?"),
        ({"keys": ["sesame"], "location": "Body"}, "has not built it yet"),
    ],
)
def test_a_wrong_table_is_refused_and_its_key_not_shown(table: dict[str, Any], words: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(SettingsError) as caught:
        read(table)

    assert words in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_a_key_is_never_shown() -> None:
    """Not even where an authorizer is printed."""
    assert "sesame" not in repr(KeyAuth((ApiKey("sesame"),)))


def test_what_is_kept_is_read() -> None:
    """The keys too, or nobody would get in after the double has started anew."""
    authorizer = {"keys": ["one", {"name": "ann", "secret": "two"}]}
    said = {"name": "one", "command": ["true"], "authorizer": authorizer}
    kept = definition.declare(said).resolved()

    assert authorizer == kept["authorizer"]
    assert definition.declare(said).definition() == definition.declare(kept).definition()
