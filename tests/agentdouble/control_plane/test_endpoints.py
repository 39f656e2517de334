from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from agentdouble import Clock
from agentdouble.control_plane import endpoints
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.settings import Settings


def made(*names: str) -> list[Instance]:
    """Return instances that were made and have ended."""

    async def make() -> list[Instance]:
        instances = Instances(Clock(), Settings.load())
        found = [await instances.get_or_create("t-1", name) for name in names]
        await instances.close()
        return found

    return asyncio.run(make())


def test_an_endpoint_names_the_host_the_instance_and_its_token() -> None:
    """A client inserts a path and keeps the query, so the query alone opens the data plane."""
    (instance,) = made("u")

    with endpoints.seen_at("http://127.0.0.1:8000/"):
        url = urlsplit(endpoints.endpoint(instance))

    assert ("http", "127.0.0.1:8000", "/") == (url.scheme, url.netloc, url.path)
    assert {"faasInstanceName": [instance.id], "Authorization": [instance.token]} == parse_qs(
        url.query
    )


def test_each_instance_has_a_token_of_its_own() -> None:
    """24 random bytes: nobody guesses another session's."""
    one, other = made("u", "v")

    assert one.token != other.token
    assert [32, 32] == [len(one.token), len(other.token)]


def test_an_endpoint_is_built_for_a_request_only() -> None:
    """Without a request there is no host to name."""
    (instance,) = made("u")

    with pytest.raises(LookupError):
        endpoints.endpoint(instance)
