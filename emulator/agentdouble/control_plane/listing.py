"""Lists: filters, time windows and paging, the same for every List action."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from agentdouble.control_plane.public_errors import invalid
from agentdouble.control_plane.wire import Moment, Wire, stamp

MAX_PAGE = 1000
DEFAULT_PAGE = 100

Item = Mapping[str, Any]


class Filter(Wire):
    """A filter: ``Name`` with exact ``Values``, or ``NameContains`` with parts of values."""

    Name: str | None = None
    NameContains: str | None = None
    Values: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_one_name(self) -> Filter:
        if (self.Name is None) == (self.NameContains is None):
            raise PydanticCustomError("filter", "it needs either a Name or a NameContains")
        return self

    @property
    def name(self) -> str:
        """The name of the filtered field."""
        return self.Name or self.NameContains or ""

    def matches(self, value: str) -> bool:
        """Return whether a value passes the filter."""
        if self.Name is not None:
            return value in self.Values
        return any(part in value for part in self.Values)


class TagFilter(Wire):
    """A required tag, with one of ``Values`` if there are any."""

    Key: str
    Values: list[str] | None = None

    def matches(self, tags: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether the tag is among those of an item."""
        return any(
            tag["Key"] == self.Key and (not self.Values or tag.get("Value") in self.Values)
            for tag in tags
        )


class Paging(Wire):
    """The paging fields of a List action: by token, or by page number."""

    MaxResults: int | None = Field(None, ge=1, le=MAX_PAGE)
    NextToken: str | None = None
    PageNumber: int | None = Field(None, ge=1)
    PageSize: int | None = Field(None, ge=1, le=MAX_PAGE)


class ListNamed(Paging):
    """The body of an action that lists items with a name and a project: filters."""

    ProjectName: str | None = None
    Filters: list[Filter] | None = None
    TagFilters: list[TagFilter] | None = None

    def matching(self, fields: Mapping[str, str]) -> Callable[[Item], bool]:
        """Return a function that checks whether an item is listed; ``fields`` as in ``matching``."""
        matches_filters = matching(self.Filters, fields)

        def matches(item: Item) -> bool:
            return (
                matches_filters(item)
                and self.ProjectName in (None, item["ProjectName"])
                and all(tag.matches(item.get("Tags") or ()) for tag in self.TagFilters or ())
            )

        return matches


class Made(Paging):
    """The window of a List action over the time of creation."""

    CreateTimeAfter: Moment | None = None
    CreateTimeBefore: Moment | None = None

    def has(self, item: Item) -> bool:
        """Return whether an item was created in the window."""
        return within(item["CreatedAt"], self.CreateTimeAfter, self.CreateTimeBefore)


class ListMade(ListNamed, Made):
    """The body of an action that lists created items: filters and time windows."""

    UpdateTimeAfter: Moment | None = None
    UpdateTimeBefore: Moment | None = None

    def matching(self, fields: Mapping[str, str]) -> Callable[[Item], bool]:
        """Return a function that checks whether an item is listed."""
        matches_named = super().matching(fields)
        return lambda item: (
            matches_named(item)
            and self.has(item)
            and within(item["UpdatedAt"], self.UpdateTimeAfter, self.UpdateTimeBefore)
        )


@dataclass(frozen=True)
class Listed:
    """An item of a list; the oldest comes first."""

    id: str
    created_at: dt.datetime
    item: Item

    @property
    def key(self) -> tuple[str, str]:
        """The sort key of the item."""
        return (self.created_at.isoformat(timespec="microseconds"), self.id)


def matching(filters: Sequence[Filter] | None, fields: Mapping[str, str]) -> Callable[[Item], bool]:
    """Return a function that checks whether an item passes every filter.

    ``fields`` maps filter names to the fields of items. Raises ActionError for an unknown name.
    """
    for index, rule in enumerate(filters or ()):
        if rule.name not in fields:
            reason = f"{rule.name[:100]!r} is not one of {', '.join(fields)}"
            raise invalid(f"Filters.{index}.{'Name' if rule.Name else 'NameContains'}", reason)
    return lambda item: all(
        rule.matches(str(item.get(fields[rule.name], ""))) for rule in filters or ()
    )


def within(time: str, after: dt.datetime | None, before: dt.datetime | None) -> bool:
    """Return whether a formatted time is in a window, both ends included."""
    return (after is None or stamp(after) <= time) and (before is None or time <= stamp(before))


def page(
    query: Paging, listed: Iterable[Listed], *, newest_first: bool = False
) -> tuple[list[Item], str]:
    """Return the items of one page and the NextToken, which is empty at the end.

    The token is the key of the last item, so pages stay right when items are added or removed.
    """
    ordered = sorted(listed, key=lambda row: row.key, reverse=newest_first)
    if query.PageNumber is not None or query.PageSize is not None:
        if query.NextToken or query.MaxResults is not None:
            reason = "PageNumber and PageSize cannot be combined with NextToken and MaxResults"
            raise invalid("PageNumber" if query.PageNumber is not None else "PageSize", reason)
        size = query.PageSize or DEFAULT_PAGE
        start = ((query.PageNumber or 1) - 1) * size
        return [row.item for row in ordered[start : start + size]], ""
    if query.NextToken:
        last = _read(query.NextToken)
        ordered = [row for row in ordered if row.key != last and (row.key < last) == newest_first]
    size = query.MaxResults or DEFAULT_PAGE
    items = [row.item for row in ordered[:size]]
    return items, _written(ordered[size - 1].key) if len(ordered) > size else ""


def _written(key: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _read(token: str) -> tuple[str, str]:
    try:
        created_at, id_ = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError):
        raise invalid("NextToken", "it was not returned by a List action") from None
    return str(created_at), str(id_)
