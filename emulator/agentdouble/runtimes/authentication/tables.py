"""Authorizers as tables: ``authorizer = { keys = ["..."] }`` of a ``[[runtimes]]`` table."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel, ConfigDict, SecretStr, field_serializer, model_validator
from pydantic_core import PydanticCustomError

from agentdouble.errors import AuthorizerError, NotBuiltError
from agentdouble.runtimes.authentication.authorizers import (
    AUTHORIZATION,
    ApiKey,
    Authorizer,
    JwtAuth,
    KeyAuth,
    location_of,
)


class NamedKey(BaseModel):
    """A key with a name; ``secret_from`` is the environment variable that holds it instead."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    secret: SecretStr | None = None
    secret_from: str | None = None

    @field_serializer("secret", when_used="json")
    def _kept(self, secret: SecretStr | None) -> str | None:
        """Show the key where the table is written to be read again."""
        return None if secret is None else secret.get_secret_value()

    def key(self) -> ApiKey:
        """Return the key; raise AuthorizerError."""
        if (self.secret is None) == (self.secret_from is None):
            raise AuthorizerError("a key with a name has either a secret or a secret_from")
        if self.secret is not None:
            return ApiKey(self.secret.get_secret_value(), self.name)
        return ApiKey(_of_the_environment(self.secret_from or ""), self.name)


class AuthorizerTable(BaseModel):
    """Either ``keys`` or ``key_from``, an environment variable's name; or a ``discovery_url``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[SecretStr | NamedKey, ...] = ()
    key_from: str | None = None
    location: str = "Header"
    name: str = AUTHORIZATION
    discovery_url: str | None = None
    allowed_clients: tuple[str, ...] = ()
    audience: str | tuple[str, ...] = ()

    @field_serializer("keys", when_used="json")
    def _kept(self, keys: tuple[SecretStr | NamedKey, ...]) -> list[Any]:
        """Show the keys where the table is written to be read again."""
        return [
            key.get_secret_value()
            if isinstance(key, SecretStr)
            else key.model_dump(mode="json", exclude_unset=True)
            for key in keys
        ]

    @model_validator(mode="after")
    def _sound(self) -> AuthorizerTable:
        try:
            self.authorizer()
        except (AuthorizerError, NotBuiltError) as error:
            reason = str(error).rstrip(".")
            raise PydanticCustomError("runtime", "{reason}", {"reason": reason}) from None
        return self

    def authorizer(self) -> Authorizer:
        """Return what the table says; raise AuthorizerError, which shows no key."""
        by_key = bool(self.keys) or self.key_from is not None
        if by_key == (self.discovery_url is not None):
            raise AuthorizerError("it has either keys (or key_from) or a discovery_url")
        if self.discovery_url is not None:
            audience = (self.audience,) if isinstance(self.audience, str) else self.audience
            return JwtAuth(self.discovery_url, self.allowed_clients, audience)
        if self.allowed_clients or self.audience:
            raise AuthorizerError("allowed_clients and audience belong to a discovery_url")
        return KeyAuth(self._all_keys(), location_of(self.location), self.name)

    def _all_keys(self) -> tuple[ApiKey, ...]:
        keys = [
            ApiKey(one.get_secret_value(), _default_name(number))
            if isinstance(one, SecretStr)
            else one.key()
            for number, one in enumerate(self.keys, 1)
        ]
        if self.key_from is not None:
            keys.append(ApiKey(_of_the_environment(self.key_from), _default_name(len(keys) + 1)))
        return tuple(keys)


def _default_name(number: int) -> str:
    return "default" if number == 1 else f"key-{number}"


def _of_the_environment(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise AuthorizerError(f"the environment variable {variable[:100]!r} holds no key")
    return value
