"""The contents of a definition, the same for every version: operations, inputs, addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.authentication import ApiKeyScheme

Json = dict[str, Any]
Where = Literal["path", "query", "header", "cookie"]
How = Literal["simple", "form", "deepObject", "json"]


@dataclass(frozen=True)
class Style:
    """How a value is written on the wire; ``delimiter`` separates the members of an array."""

    how: How
    explode: bool = False
    delimiter: str = ","


@dataclass(frozen=True)
class Parameter:
    """A parameter: ``argument`` is its name in the tool, ``name`` its name on the wire."""

    argument: str
    name: str
    where: Where
    style: Style


@dataclass(frozen=True)
class Field:
    """A form field; without a style, its value's type decides how it is written."""

    style: Style | None = None
    is_file: bool = False


@dataclass(frozen=True)
class Body:
    """The body of a request.

    It comes from one argument, or, for a form of Swagger 2.0, from several: ``arguments`` maps
    their names to the names of the form's fields.
    """

    kind: Literal["json", "urlencoded", "multipart", "raw"]
    media_type: str
    argument: str | None
    arguments: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """An operation, which is one tool; ``input_schema`` is self-contained JSON Schema 2020-12."""

    name: str
    title: str | None
    description: str
    method: str
    path: str
    input_schema: Json
    parameters: tuple[Parameter, ...]
    body: Body | None
    accept: str
    address: str | None = None  # its own base URL, in place of the definition's


@dataclass(frozen=True)
class Definition:
    """A definition that has been read.

    ``document`` can be stored and read again.
    """

    title: str
    version: str
    description: str
    operations: tuple[Operation, ...]
    address: str | None
    api_keys: Mapping[str, ApiKeyScheme]
    document: Json = field(repr=False, compare=False)


def mapping(value: Any) -> Json:
    """Return the object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return the array, or an empty one for any other value."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return the string, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def boolean(value: Any) -> bool:
    """Return whether a value is the boolean true."""
    return value is True


class Addresses:
    """The base URL of each operation: the given one, else the definition's."""

    def __init__(self, definition: Definition, base_url: str | None) -> None:
        self._definition = definition
        self._base_url = _checked_url(base_url) if base_url is not None else None
        for operation in definition.operations:
            self.of(operation)

    def of(self, operation: Operation) -> str:
        """Return an operation's base URL, without a slash at its end."""
        if self._base_url is not None:
            return self._base_url
        return _checked_url(operation.address or self._definition.address or "/")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(one <= " " or one == "\x7f" for one in url):
        raise DefinitionError(
            "it does not say where the API is: give base_url, an http(s) URL, such as "
            "'https://api.example.com/v1'"
        )
    if parts.query or parts.fragment:
        raise DefinitionError("the API's URL has a query or a fragment, which no path can follow")
    return url.rstrip("/")
