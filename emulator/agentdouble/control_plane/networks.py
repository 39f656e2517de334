"""Where a resource is reached: the double's one address, for every network that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentdouble.control_plane import endpoints
from agentdouble.control_plane.fields import Wire


class Vpc(Wire):
    """Where in a private network; kept and shown."""

    EnableSharedInternetAccess: bool | None = None
    SecurityGroupIds: list[str] | None = None
    SubnetIds: list[str] | None = None
    VpcId: str


class Network(Wire):
    """Which networks reach a resource; kept and shown."""

    VpcConfiguration: Vpc | None = None
    EnablePrivateNetwork: bool | None = None
    EnablePublicNetwork: bool | None = None


def shown(given: Mapping[str, Any], path: str = "") -> list[dict[str, Any]]:
    """Return the NetworkConfigurations of a resource at a path, by its NetworkConfiguration."""
    vpc = {"VpcConfiguration": given["VpcConfiguration"]} if "VpcConfiguration" in given else {}
    wanted = {
        "public": given.get("EnablePublicNetwork", True),
        "private": given.get("EnablePrivateNetwork", False),
    }
    address = endpoints.base_url() + path
    return [{"NetworkType": kind, "Endpoint": address, **vpc} for kind, on in wanted.items() if on]
