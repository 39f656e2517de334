"""The Metadata of sessions: texts by key, which ListSessions filters by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from agentdouble.control_plane import wire

VALUE_LIMIT = 63  # bytes of UTF-8


def _check_value(value: str) -> str:
    size = len(value.encode())
    if size > VALUE_LIMIT:
        raise _wrong(f"it has {size} bytes of UTF-8; the limit is {VALUE_LIMIT}")
    return value


class Entry(wire.Wire):
    """One text of the metadata."""

    Key: str = Field(min_length=1)
    Type: Literal["String"] | None = None
    Value: Annotated[str, AfterValidator(_check_value)]


def _check_keys(entries: Sequence[Entry]) -> Sequence[Entry]:
    keys = [entry.Key for entry in entries]
    for key in keys:
        if keys.count(key) > 1:
            raise _wrong(f"the Key {key[:100]!r} occurs twice")
    return entries


Entries = Annotated[list[Entry], AfterValidator(_check_keys)]


class ShownEntry(TypedDict):
    """One text of the metadata, as answers have it."""

    Key: str
    Type: Literal["String"]
    Value: str


def by_key(entries: Sequence[Entry] | None) -> Mapping[str, str]:
    """Return the texts of a request by their keys."""
    return {entry.Key: entry.Value for entry in entries or ()}


def shown(metadata: Mapping[str, str]) -> list[ShownEntry]:
    """Return metadata as answers have it."""
    return [{"Key": key, "Type": "String", "Value": value} for key, value in metadata.items()]


def _wrong(reason: str) -> PydanticCustomError:
    return PydanticCustomError("metadata", "{reason}", {"reason": reason})
