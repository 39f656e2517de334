"""A definition: its document with references, and what it describes, the same for every version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.backend_credentials import SecurityScheme

Json = dict[str, Any]
# The names of the schemes of each alternative; None if the definition does not say.
Security = tuple[tuple[str, ...], ...] | None
Where = Literal["path", "query", "header", "cookie"]
Kind = Literal["json", "urlencoded", "multipart", "text", "raw"]
How = Literal["simple", "label", "matrix", "form", "deepObject", "json", "text"]

MOST_NOTES = 5  # warnings about mistakes without effect


@dataclass(frozen=True)
class Style:
    """How a value is written on the wire.

    ``delimiter`` separates the members of an array, and ``nested`` has the delimiters of the arrays
    in it, the outermost first. With ``reserved``, reserved characters are not percent-encoded.
    """

    how: How
    explode: bool = False
    delimiter: str = ","
    nested: tuple[str, ...] = ()
    reserved: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter: ``argument`` is its name in the tool, ``name`` its name on the wire."""

    argument: str
    name: str
    where: Where
    style: Style


@dataclass(frozen=True)
class DefinedField:
    """A form field; without a style, its value's type decides how it is written.

    ``media_types`` are those that the definition allows for its part of a multipart body. A file
    ``or_other`` value is a file if it is written as an object with its content.
    """

    style: Style | None = None
    is_file: bool = False
    media_types: tuple[str, ...] = ()
    or_other: bool = False


@dataclass(frozen=True)
class DefinedBody:
    """The body of a request.

    It comes from one argument, or, for a form of Swagger 2.0, from several: ``arguments`` maps
    their names to the names of the form's fields. ``others`` is a field that ``fields`` lacks.
    """

    kind: Kind
    media_type: str
    argument: str | None
    arguments: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, DefinedField] = field(default_factory=dict)
    others: DefinedField = DefinedField()


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
    security: Security = None


@dataclass(frozen=True)
class ApiDefinition:
    """A definition that has been read.

    ``document`` can be stored and read again. ``warnings`` say what in it could not be used.
    """

    title: str
    version: str
    description: str
    operations: tuple[DefinedOperation, ...]
    address: str | None
    security_schemes: Mapping[str, SecurityScheme]
    document: Json = field(repr=False, compare=False)
    warnings: tuple[str, ...] = ()


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
    if "{" in url:
        raise DefinitionError(
            f"the API's URL {url!r} has a variable without a default: give base_url"
        )
    if parts.query or parts.fragment:
        raise DefinitionError("the API's URL has a query or a fragment, which no path can follow")
    return url.rstrip("/")


class Document:
    """A document and the version of its format: ``"2.0"``, ``"3.0"`` or ``"3.1"``."""

    def __init__(self, root: Json, version: str) -> None:
        self.root = root
        self.version = version
        self._dangling: dict[str, str] = {}  # warnings, by reference
        self._notes: dict[str, str] = {}  # warnings of other mistakes, by place

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, and the first mistakes that have no effect."""
        first = [*self._notes.values()][:MOST_NOTES]
        more = len(self._notes) - len(first)
        return (*self._dangling.values(), *first, *([f"{more} more are alike."] if more else ()))

    def note(self, place: str, warning: str) -> None:
        """Note a mistake without effect: once for its place."""
        self._notes.setdefault(place, warning)

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
        start = location
        visited: dict[str, None] = {}  # in order, and quick for a chain of thousands
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            reference = node["$ref"]
            if reference in visited:
                circle = " -> ".join([*visited, reference])
                raise DefinitionError(f"references go round in a circle: {circle}", location=start)
            visited[reference] = None
            node, location = self.target(reference, location), reference
        return node, location

    def followed_if_possible(self, node: Any, location: str) -> tuple[Any, str]:
        """Return the same, or an empty object with a warning if a reference leads nowhere.

        For schemas and answers only: without them, an operation can still be called.
        """
        try:
            return self.followed(node, location)
        except DefinitionError as error:
            self.warn(node["$ref"], error)
            return {}, location

    def warn(self, reference: str, error: DefinitionError) -> None:
        """Note a reference that cannot be followed: once, at its first place."""
        self._dangling.setdefault(
            reference, f"{error.reason} (at {error.place}). Any value is allowed there."
        )


def step(location: str, *keys: str | int) -> str:
    """Return the JSON pointer of a place below a place."""
    return location + "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)


def steps(reference: str) -> list[str]:
    """Return the keys of a reference within a document."""
    parts = unquote(reference[1:]).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]
