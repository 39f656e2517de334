"""Authorizers as tables: ``authorizer = { keys = ["..."] }`` in a settings file, and as kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from agentdouble.errors import AuthorizerError, SettingsError
from agentdouble.runtimes.authentication.authorizers import (
    AUTHORIZATION,
    ApiKey,
    Authorizer,
    JwtAuth,
    KeyAuth,
    location_of,
)

_KEY = "runtimes.authorizer"


class NamedKey(BaseModel):
    """A key with a name; ``secret_from`` is the environment variable that holds it instead."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    secret: SecretStr | None = None
    secret_from: str | None = None


class Table(BaseModel):
    """Either ``keys`` or ``key_from``, an environment variable's name; or a ``discovery_url``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[SecretStr | NamedKey, ...] = ()
    key_from: str | None = None
    location: str = "Header"
    name: str = AUTHORIZATION
    discovery_url: str | None = None
    allowed_clients: tuple[str, ...] = ()
    audience: str | tuple[str, ...] = ()


def read(table: Mapping[str, Any]) -> Authorizer:
    """Return what a table says; raise SettingsError, which shows no key."""
    try:
        found = Table.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join((_KEY, *map(str, first["loc"])))
        raise SettingsError(
            f"The setting {key} is wrong: {first['msg']}.", key=key, source="the settings"
        ) from None
    try:
        return _authorizer(found)
    except AuthorizerError as error:
        raise _wrong(str(error)) from None


def write(authorizer: Authorizer) -> dict[str, Any]:
    """Return the table that ``read`` makes this authorizer of, keys in the clear."""
    if isinstance(authorizer, JwtAuth):
        return {
            "discovery_url": authorizer.discovery_url,
            "allowed_clients": list(authorizer.allowed_clients),
            "audience": list(authorizer.audience),
        }
    return {
        "keys": [{"name": key.name, "secret": key.secret} for key in authorizer.keys],
        "location": authorizer.location,
        "name": authorizer.name,
    }


def _authorizer(table: Table) -> Authorizer:
    by_key = bool(table.keys) or table.key_from is not None
    if by_key == (table.discovery_url is not None):
        raise _wrong("It has either keys (or key_from) or a discovery_url.")
    if table.discovery_url is None:
        if table.allowed_clients or table.audience:
            raise _wrong("allowed_clients and audience belong to a discovery_url, not to keys.")
        return KeyAuth(_keys(table), location_of(table.location), table.name)
    audience = (table.audience,) if isinstance(table.audience, str) else table.audience
    return JwtAuth(table.discovery_url, table.allowed_clients, audience)


def _keys(table: Table) -> tuple[ApiKey, ...]:
    keys = [_key(number, one) for number, one in enumerate(table.keys, 1)]
    if table.key_from is not None:
        keys.append(ApiKey(_of_the_environment(table.key_from), _default_name(len(keys) + 1)))
    return tuple(keys)


def _key(number: int, key: SecretStr | NamedKey) -> ApiKey:
    if isinstance(key, SecretStr):
        return ApiKey(key.get_secret_value(), _default_name(number))
    if (key.secret is None) == (key.secret_from is None):
        raise _wrong("A key with a name has either a secret or a secret_from.")
    if key.secret is not None:
        return ApiKey(key.secret.get_secret_value(), key.name)
    return ApiKey(_of_the_environment(key.secret_from or ""), key.name)


def _default_name(number: int) -> str:
    return "default" if number == 1 else f"key-{number}"


def _of_the_environment(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise _wrong(f"The environment variable {variable[:100]!r} holds no key.")
    return value


def _wrong(message: str) -> SettingsError:
    return SettingsError(f"The setting {_KEY} is wrong: {message}", key=_KEY, source="the settings")
