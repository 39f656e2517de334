"""What a definition says about credentials: its schemes, and those that an operation needs."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from agentdouble.core.suggestions import did_you_mean
from agentdouble.mcp_services.backend_credentials import (
    ApiKey,
    Auth,
    Basic,
    Credential,
    SecurityScheme,
    credential,
    default_scheme,
)
from agentdouble.mcp_services.openapi.definition import (
    ApiDefinition,
    DefinedOperation,
    Document,
    Json,
    Security,
    mapping,
    step,
    text,
)

_SHOWN = 3
PLACES = ("header", "query", "cookie")


def schemes(document: Document, declared: Json) -> dict[str, SecurityScheme]:
    """Return a document's security schemes, by name."""
    found: dict[str, SecurityScheme] = {}
    for name, written in declared.items():
        node = mapping(document.followed_if_possible(written, step("#", name))[0])
        kind, where = text(node.get("type")), node.get("in")
        if kind == "apiKey":
            found[name] = _api_key(text(node.get("name")), where)
        elif kind == "basic" or text(node.get("scheme")).lower() == "basic":
            found[name] = SecurityScheme("basic")
        elif kind in ("oauth2", "openIdConnect") or text(node.get("scheme")).lower() == "bearer":
            found[name] = SecurityScheme("bearer")
        else:
            found[name] = SecurityScheme("other", text(node.get("scheme")) or kind)
    return found


def _api_key(name: str, where: Any) -> SecurityScheme:
    if where not in PLACES:
        places = ", ".join(PLACES)
        written = reprlib.repr(where)
        return SecurityScheme("other", f"an API key in {written}, which is not one of {places}")
    if not name:
        return SecurityScheme("other", "an API key without a name")
    return SecurityScheme("apiKey", name, where)


def note_undeclared(
    document: Document, operations: Iterable[DefinedOperation], declared: Iterable[str]
) -> None:
    """Warn of the schemes that operations name and the definition does not declare."""
    for operation in operations:
        for name in (name for names in operation.security or () for name in names):
            if name not in declared:
                document.note(
                    f"security {name}",
                    f"{operation.method} {operation.path} needs the security scheme {name!r}, "
                    f"which is not declared.{did_you_mean(name, declared)}",
                )


def alternatives(operation: Json, root: Json) -> Security:
    """Return the alternatives that an operation has, each with the names of its schemes.

    An operation with an empty list needs no credential. A document with one says nothing.
    """
    written: Any = operation.get("security", root.get("security") or None)
    if not isinstance(written, list):
        return None
    return tuple(tuple(mapping(requirement)) for requirement in written)


def credentials(definition: ApiDefinition, auth: Auth | None) -> Mapping[str, Credential]:
    """Return the credential of each operation by its name.

    ``auth`` is sent unless the operation needs none. An API key without a place is sent as the
    first scheme that the operation names. Raises DefinitionError if it has no place.
    """
    declared = definition.security_schemes
    by_scheme = {"": credential(auth, declared)}
    found: dict[str, Credential] = {}
    for operation in definition.operations:
        if operation.security is not None and not any(operation.security):
            found[operation.name] = Credential()
            continue
        name = ""
        if isinstance(auth, ApiKey) and auth.name is None and auth.scheme is None:
            name = _api_key_of(operation, declared)
            if name not in by_scheme:
                by_scheme[name] = credential(ApiKey(auth.key, scheme=name), declared)
        found[operation.name] = by_scheme[name]
    return found


def _api_key_of(operation: DefinedOperation, declared: Mapping[str, SecurityScheme]) -> str:
    # an alternative with one scheme comes first: the key alone is enough there
    simplest_first = sorted(operation.security or (), key=lambda names: len(names) > 1)
    named = (name for names in simplest_first for name in names)
    return next((name for name in named if _is_api_key(declared.get(name))), "")


def _is_api_key(scheme: SecurityScheme | None) -> bool:
    return scheme is not None and scheme.kind == "apiKey"


def missing_credentials(definition: ApiDefinition, auth: Auth | None) -> list[str]:
    """Return a warning if operations need credentials that are not sent."""
    declared = definition.security_schemes
    if not declared:
        return []
    lacking = [
        operation for operation in definition.operations if not _is_met(operation, declared, auth)
    ]
    if not lacking:
        return []
    needed = dict.fromkeys(
        " and ".join(f"{name} ({_described(declared.get(name))})" for name in names)
        for operation in lacking
        for names in operation.security or tuple((name,) for name in declared)
    )
    shown = " or ".join([*needed][:_SHOWN]) + (" or others" if len(needed) > _SHOWN else "")
    count = f"{len(lacking)} of {len(definition.operations)} operations need a credential"
    reason = "which is not sent" if auth is not None else "and the service has none"
    return [f"{count}, {reason}: {shown}."]


def _is_met(
    operation: DefinedOperation, declared: Mapping[str, SecurityScheme], auth: Auth | None
) -> bool:
    """Return whether one of an operation's alternatives is sent."""
    if operation.security is None:
        return auth is not None
    if not operation.security or not all(operation.security):
        return True  # there are none, or one of them is to send nothing
    return any(
        len(names) == 1 and _is_sent(names[0], operation, declared, auth)
        for names in operation.security
    )


def _is_sent(
    name: str,
    operation: DefinedOperation,
    declared: Mapping[str, SecurityScheme],
    auth: Auth | None,
) -> bool:
    scheme = declared.get(name)
    if auth is None or scheme is None:
        return auth is not None
    if isinstance(auth, Basic):
        return scheme.kind == "basic" or scheme.is_header("authorization")
    if not isinstance(auth, ApiKey):
        return scheme.kind == "bearer" or scheme.is_header("authorization")
    if auth.name is not None:
        return scheme == SecurityScheme("apiKey", auth.name, auth.where) or scheme.kind == "other"
    chosen = auth.scheme or _api_key_of(operation, declared) or default_scheme(declared)
    return chosen == name


def _described(scheme: SecurityScheme | None) -> str:
    if scheme is None:
        return "not declared"
    if scheme.kind == "apiKey":
        return f"an API key in the {scheme.where}: {scheme.name}"
    return {"basic": "user and password", "bearer": "a bearer token"}.get(scheme.kind, scheme.name)
