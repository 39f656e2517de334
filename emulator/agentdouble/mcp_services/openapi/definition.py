"""What a definition says, the same for every version: operations, their inputs, their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Where = Literal["path", "query", "header", "cookie"]
How = Literal["simple", "label", "matrix", "form", "deepObject", "json"]


@dataclass(frozen=True)
class Style:
    """How a value is written on the wire.

    ``delimiters`` stand between the members of an array; the second one is for arrays in it.
    """

    how: How
    explode: bool = False
    delimiters: tuple[str, ...] = (",",)
    allow_reserved: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter: ``argument`` is what the tool calls it, ``name`` what the wire does."""

    argument: str
    name: str
    where: Where
    style: Style


@dataclass(frozen=True)
class Field:
    """A field of a form; without a style, its value's type decides how it is written."""

    style: Style | None = None
    media_type: str | None = None
    is_file: bool = False


@dataclass(frozen=True)
class Body:
    """The body of a request.

    It comes from one argument, or, a form of Swagger 2.0, from several: ``arguments`` maps
    theirs to the names of the form's fields.
    """

    kind: Literal["json", "urlencoded", "multipart", "raw"]
    media_type: str
    argument: str | None
    arguments: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Address:
    """Where operations are called: a URL, perhaps with variables or relative to the document's."""

    url: str
    variables: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """One operation, which is one tool; ``input_schema`` is JSON Schema 2020-12, self-contained."""

    name: str
    title: str | None
    description: str
    method: str
    path: str
    input_schema: Json
    parameters: tuple[Parameter, ...]
    body: Body | None
    accept: str
    address: Address | None = None  # its own, in place of the definition's


@dataclass(frozen=True)
class ApiKeyScheme:
    """An API key as the definition declares it: ``name`` of a header, query key or cookie."""

    name: str
    where: Literal["header", "query", "cookie"]


@dataclass(frozen=True)
class Definition:
    """A definition that has been read.

    ``document`` is what was read, for who keeps it: load it again with ``validate=False``.
    ``origin`` is the URL it came from, which relative addresses are relative to.
    """

    title: str
    version: str
    description: str
    operations: tuple[Operation, ...]
    address: Address | None
    api_keys: Mapping[str, ApiKeyScheme]
    document: Json = field(repr=False, compare=False)
    origin: str | None = field(default=None, repr=False)  # it may have a password in it
