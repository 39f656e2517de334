"""Agent cards: an agent's description and addresses (A2A-01, section 2.9)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from a2a.compat.v0_3.conversions import to_compat_agent_card
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict, ParseError

from agentdouble.apps.a2a.paths import MODES
from agentdouble.errors import CardError, NotBuiltError

VERSIONS = ("1.0", "0.3")
LEGACY_VERSION = "0.3.0"  # in the form that cards of that era use
BINDINGS = {"1.0": ("JSONRPC", "HTTP+JSON"), "0.3": ("JSONRPC",)}


def agent_card(
    agent: object,
    url: str,
    *,
    version: str = "1.0.0",
    protocol_versions: Sequence[str] = VERSIONS[:1],
    input_modes: Sequence[str] = MODES,
) -> AgentCard:
    """Return the card of an agent at a URL (A2A-01).

    ``agent`` is a name, a function, or any object with a ``name`` and optionally a ``description``.
    The URL always serves both protocol versions, and callers get the card in theirs (``service``
    says which). A card that also declares 0.3 names the address of that version itself.
    ``input_modes`` are the media types that the agent accepts ("image/png", "image/*"). Raises
    CardError for a wrong URL.
    """
    name, description = _names(agent)
    return AgentCard(
        name=name,
        description=description,
        version=version,
        supported_interfaces=_interfaces(url, protocol_versions),
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=input_modes,
        default_output_modes=MODES,
        skills=[AgentSkill(id=name, name=name, description=description, tags=["agent"])],
    )


def checked(card: AgentCard | Mapping[str, Any]) -> AgentCard:
    """Return a card, given as an AgentCard or its JSON, if it has every required field.

    Raises CardError if it lacks one, and NotBuiltError if it promises gRPC.
    """
    parsed = card if isinstance(card, AgentCard) else _parsed(card)
    missing = _missing(parsed)
    if missing:
        raise CardError(
            f"The agent card lacks {', '.join(missing)}: agent_card(agent, url) returns a "
            "complete one.",
            fields=missing,
        )
    if any(i.protocol_binding.upper() == "GRPC" for i in parsed.supported_interfaces):
        raise NotBuiltError("A2A over gRPC", "Leave that interface out of the card.")
    return parsed


def _names(agent: object) -> tuple[str, str]:
    if isinstance(agent, str):
        name, description = agent, ""
    else:
        name = getattr(agent, "name", None) or getattr(agent, "__name__", "") or "agent"
        description = getattr(agent, "description", None) or ""
        if not description and inspect.isroutine(agent):
            description = inspect.getdoc(agent) or ""
    return str(name), str(description) or f"The agent {name}."


def _interfaces(url: str, versions: Sequence[str]) -> list[AgentInterface]:
    parsed = urlsplit(url)
    if parsed.scheme not in ("http", "https") or not parsed.hostname:
        raise CardError(f"The URL of an agent card must begin with http:// or https://: {url!r}.")
    unknown = [version for version in versions if version not in VERSIONS]
    if unknown or not versions:
        raise CardError(f"The protocol versions are {', '.join(VERSIONS)}, not {list(versions)!r}.")
    return [
        AgentInterface(url=url.rstrip("/"), protocol_binding=binding, protocol_version=version)
        for version in versions
        for binding in BINDINGS[version]
    ]


def _parsed(card: Any) -> AgentCard:
    if not isinstance(card, Mapping):
        raise CardError(f"An agent card is an AgentCard or its JSON, not {type(card).__name__}.")
    try:
        parsed: AgentCard = ParseDict(dict(card), AgentCard(), ignore_unknown_fields=True)
    except ParseError as error:
        raise CardError(f"This is not an agent card: {error}") from None
    return parsed


def _missing(card: AgentCard) -> list[str]:
    try:
        validate_proto_required_fields(card)
    except Exception as error:
        errors = (getattr(error, "data", None) or {}).get("errors", [])
        return [str(problem.get("field", problem)) for problem in errors] or [str(error)]
    return []


def modern(card: AgentCard) -> AgentCard:
    """Return a card without interfaces of 0.3, so that it is written without fields of 0.3.

    A card that has no other interfaces stays as it is.
    """
    interfaces = [interface for interface in card.supported_interfaces if not _is_legacy(interface)]
    return _with_interfaces(card, interfaces or card.supported_interfaces)


def both_versions(card: AgentCard) -> AgentCard:
    """Return a card that is written with the fields of 1.0 and of 0.3.

    The interfaces of 1.0 come first, because their order is the order of preference.
    """
    if any(_is_legacy(interface) for interface in card.supported_interfaces):
        return card
    combined = _with_interfaces(card, card.supported_interfaces)
    for i in card.supported_interfaces:
        if i.protocol_binding in BINDINGS["0.3"]:
            combined.supported_interfaces.add(
                url=i.url, protocol_binding=i.protocol_binding, protocol_version=LEGACY_VERSION
            )
    return combined


def legacy(card: AgentCard) -> dict[str, Any]:
    """Return a card in the format of version 0.3, with all interfaces."""
    return to_compat_agent_card(both_versions(card)).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )


def _is_legacy(interface: AgentInterface) -> bool:
    return interface.protocol_version.startswith("0.")


def _with_interfaces(card: AgentCard, interfaces: Iterable[AgentInterface]) -> AgentCard:
    """Return a copy of a card with these interfaces."""
    copy = AgentCard()
    copy.CopyFrom(card)
    del copy.supported_interfaces[:]
    copy.supported_interfaces.extend(interfaces)
    return copy
