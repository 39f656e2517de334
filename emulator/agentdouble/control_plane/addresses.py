"""The addresses in answers, as the client reaches the double."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlencode

from typing_extensions import NotRequired, TypedDict

from agentdouble.control_plane.wire import Wire
from agentdouble.sandbox.data_plane.session_token import INSTANCE, TOKEN
from agentdouble.sandbox.session import SandboxSession

_base_url: ContextVar[str] = ContextVar("agentdouble_base_url")


@contextmanager
def seen_at(base_url: str) -> Iterator[None]:
    """Let ``endpoint`` build URLs below ``base_url`` inside the block."""
    token = _base_url.set(base_url.rstrip("/"))
    try:
        yield
    finally:
        _base_url.reset(token)


def base_url() -> str:
    """Return the URL that the client used for the double, without a trailing slash."""
    return _base_url.get()


def endpoint(session: SandboxSession) -> str:
    """Return the URL of a session; a client inserts a path and keeps the query.

    ``http://127.0.0.1:8000/?faasInstanceName=s-...&Authorization=...``. Raises LookupError
    outside of ``seen_at``.
    """
    query = urlencode({INSTANCE: session.id, TOKEN: session.token})
    return f"{base_url()}/?{query}"


class Network(Wire):
    """The networks that reach a resource; stored and shown."""

    VpcConfiguration: dict[str, Any] | None = None
    EnablePrivateNetwork: bool | None = None
    EnablePublicNetwork: bool | None = None


class NetworkConfiguration(TypedDict):
    """A network that reaches a resource, and the address there."""

    NetworkType: str
    Endpoint: str
    VpcConfiguration: NotRequired[dict[str, Any]]


def network_configurations(fields: Mapping[str, Any], path: str = "") -> list[NetworkConfiguration]:
    """Return the NetworkConfigurations of a resource at a path, from its NetworkConfiguration.

    The double has one address, which it shows for every requested network.
    """
    enabled = {
        "public": fields.get("EnablePublicNetwork", True),
        "private": fields.get("EnablePrivateNetwork", False),
    }
    address = base_url() + path
    return [_network(kind, address, fields) for kind, on in enabled.items() if on]


def _network(kind: str, address: str, fields: Mapping[str, Any]) -> NetworkConfiguration:
    network: NetworkConfiguration = {"NetworkType": kind, "Endpoint": address}
    if "VpcConfiguration" in fields:
        network["VpcConfiguration"] = fields["VpcConfiguration"]
    return network
