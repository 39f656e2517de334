"""A definition: its document with references, and what it describes, the same for every version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.backend_credentials import ApiKeyScheme

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
class DefinedField:
    """A form field; without a style, its value's type decides how it is written."""

    style: Style | None = None
    is_file: bool = False


@dataclass(frozen=True)
class DefinedBody:
    """The body of a request.

    It comes from one argument, or, for a form of Swagger 2.0, from several: ``arguments`` maps
    their names to the names of the form's fields.
    """

    kind: Literal["json", "urlencoded", "multipart", "raw"]
    media_type: str
    argument: str | None
    arguments: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, DefinedField] = field(default_factory=dict)


@dataclass(frozen=True)
class DefinedOperation:
    """An operation, which is one tool; ``input_schema`` is self-contained JSON Schema 2020-12."""

    name: str
    title: str | None
    description: str
    method: str
    path: str
    input_schema: Json
    parameters: tuple[Parameter, ...]
    body: DefinedBody | None
    accept: str
    address: str | None = None  # its own base URL, in place of the definition's


@dataclass(frozen=True)
class ApiDefinition:
    """A definition that has been read.

    ``document`` can be stored and read again.
    """

    title: str
    version: str
    description: str
    operations: tuple[DefinedOperation, ...]
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


def address_of(definition: ApiDefinition, operation: DefinedOperation, base_url: str | None) -> str:
    """Return an operation's base URL, without a slash at its end; raise DefinitionError.

    It is the given one, else the operation's, else the definition's.
    """
    if base_url is not None:
        return _checked_url(base_url)
    return _checked_url(operation.address or definition.address or "/")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(char <= " " or char == "\x7f" for char in url):
        raise DefinitionError(
            "it does not say where the API is: give base_url, an http(s) URL, such as "
            "'https://api.example.com/v1'"
        )
    if parts.query or parts.fragment:
        raise DefinitionError("the API's URL has a query or a fragment, which no path can follow")
    return url.rstrip("/")


class Document:
    """A document and the version of its format: ``"2.0"``, ``"3.0"`` or ``"3.1"``."""

    def __init__(self, root: Json, version: str) -> None:
        self.root = root
        self.version = version

    def target(self, reference: str, location: str) -> Any:
        """Return the target of a reference; ``location`` is where the reference is."""
        if not reference.startswith("#"):
            raise DefinitionError(
                f"the reference {reference!r} leads out of the document, and what is outside is "
                "not read. Put everything into one document",
                location=location,
            )
        if reference != "#" and not reference.startswith("#/"):
            raise DefinitionError(
                f"the reference {reference!r} names an anchor; only paths like "
                "'#/components/schemas/Name' are followed",
                location=location,
            )
        return self._at(reference, location)

    def _at(self, reference: str, location: str) -> Any:
        node: Any = self.root
        for part in steps(reference):
            try:
                node = node[int(part)] if isinstance(node, list) else node[part]
            except (KeyError, IndexError, ValueError, TypeError):
                raise DefinitionError(
                    f"the reference {reference!r} leads nowhere: there is no {part!r}",
                    location=location,
                ) from None
        return node

    def followed(self, node: Any, location: str) -> tuple[Any, str]:
        """Return the value at the end of a chain of references, and its place."""
        visited: dict[str, None] = {}  # in order, and quick for a chain of thousands
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            reference = node["$ref"]
            if reference in visited:
                circle = " -> ".join([*visited, reference])
                raise DefinitionError(
                    f"references go round in a circle: {circle}", location=location
                )
            visited[reference] = None
            node, location = self.target(reference, location), reference
        return node, location


def step(location: str, *keys: str | int) -> str:
    """Return the JSON pointer of a place below a place."""
    return location + "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)


def steps(reference: str) -> list[str]:
    """Return the keys of a reference within a document."""
    parts = unquote(reference[1:]).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]
