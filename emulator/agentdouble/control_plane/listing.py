"""Lists: filters, time windows and paging, the same for every List action."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.wire import Moment, Wire

MAX_PAGE = 1000
DEFAULT_PAGE = 100
_PAGING = frozenset(("MaxResults", "NextToken", "PageNumber", "PageSize"))


class Filter(Wire):
    """A filter: ``Name`` with exact ``Values``, or ``NameContains`` with parts of values."""

    Name: str | None = None
    NameContains: str | None = None
    Values: list[str] = Field(min_length=1)


class TagFilter(Wire):
    """A required tag, with one of ``Values`` if there are any."""

    Key: str
    Values: list[str] | None = None


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

    def passes(self, fields: Mapping[str, str]) -> Callable[[Listed], bool]:
        """Return a function that checks whether an item is listed; ``fields`` as in ``matching``.

        Raises ActionError.
        """
        checks = (
            matching(self.Filters, fields),
            tagged(self.TagFilters),
            lambda one: self.ProjectName in (None, one.item["ProjectName"]),
        )
        return lambda one: all(check(one) for check in checks)


class ListMade(ListNamed):
    """The body of an action that lists created items: filters and time windows."""

    CreateTimeAfter: Moment | None = None
    CreateTimeBefore: Moment | None = None
    UpdateTimeAfter: Moment | None = None
    UpdateTimeBefore: Moment | None = None

    def passes(self, fields: Mapping[str, str]) -> Callable[[Listed], bool]:
        """Return a function that checks whether an item is listed."""
        checks = (
            super().passes(fields),
            within("CreatedAt", self.CreateTimeAfter, self.CreateTimeBefore),
            within("UpdatedAt", self.UpdateTimeAfter, self.UpdateTimeBefore),
        )
        return lambda one: all(check(one) for check in checks)


@dataclass(frozen=True)
class Listed:
    """An item of a list: its shown fields, and its times by their shown names."""

    id: str
    times: Mapping[str, dt.datetime]
    item: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """The sort key: the oldest comes first."""
        return (self.times["CreatedAt"].isoformat(timespec="microseconds"), self.id)


def matching(
    filters: Sequence[Filter] | None, fields: Mapping[str, str]
) -> Callable[[Listed], bool]:
    """Return a function that checks whether an item passes every filter.

    ``fields`` maps filter names to the fields of items. Raises ActionError for a filter with an
    unknown name, or without exactly one name.
    """
    checks = [_check(index, one, fields) for index, one in enumerate(filters or ())]
    return lambda listed: all(check(listed) for check in checks)


def _check(index: int, one: Filter, fields: Mapping[str, str]) -> Callable[[Listed], bool]:
    named = [name for name in ("Name", "NameContains") if getattr(one, name) is not None]
    if len(named) != 1:
        raise invalid(f"Filters.{index}", "it needs either a Name or a NameContains")
    name = getattr(one, named[0])
    if name not in fields:
        known = ", ".join(fields)
        raise invalid(f"Filters.{index}.{named[0]}", f"{name[:100]!r} is none of {known}")
    field, values = fields[name], one.Values
    if named == ["Name"]:
        return lambda listed: str(listed.item.get(field, "")) in values
    return lambda listed: any(value in str(listed.item.get(field, "")) for value in values)


def tagged(filters: Sequence[TagFilter] | None) -> Callable[[Listed], bool]:
    """Return a function that checks whether an item has every requested tag."""

    def has(listed: Listed, one: TagFilter) -> bool:
        return any(
            tag["Key"] == one.Key and (not one.Values or tag.get("Value") in one.Values)
            for tag in listed.item.get("Tags") or ()
        )

    return lambda listed: all(has(listed, one) for one in filters or ())


def within(
    field: str, after: dt.datetime | None, before: dt.datetime | None
) -> Callable[[Listed], bool]:
    """Return a function that checks whether a shown time is in a window, both ends included."""

    def inside(listed: Listed) -> bool:
        shown = listed.times[field].replace(microsecond=0)
        return (after is None or after <= shown) and (before is None or shown <= before)

    return inside


class Pages:
    """Cuts lists into pages; its tokens are opaque, and only its own tokens are valid."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def cut(
        self,
        action: str,
        query: Paging,
        found: Iterable[Listed],
        *,
        newest_first: bool = False,
    ) -> tuple[list[Mapping[str, Any]], str]:
        """Return the items of one page and the NextToken, which is empty at the end."""
        ordered = sorted(found, key=lambda listed: listed.key, reverse=newest_first)
        if query.PageNumber is not None or query.PageSize is not None:
            return _numbered(query, ordered), ""
        scope = f"{action} {query.model_dump_json(exclude=set(_PAGING))}"
        if query.NextToken:
            last = self._read(scope, query.NextToken)
            ordered = [
                listed
                for listed in ordered
                if listed.key != last and (listed.key < last) == newest_first
            ]
        size = query.MaxResults or DEFAULT_PAGE
        page = ordered[:size]
        more = len(ordered) > size
        return [one.item for one in page], self._issue(scope, page[-1].key) if more else ""

    # The token is the last item's key, signed together with the query. So pages stay right
    # when items are added or removed, and a forged token or a token of another query is
    # refused.
    def _issue(self, scope: str, key: tuple[str, str]) -> str:
        text = json.dumps(key).encode()
        return _encoded(self._mac(scope, text) + text)

    def _read(self, scope: str, token: str) -> tuple[str, str]:
        try:
            raw = base64.urlsafe_b64decode(token.encode("ascii") + b"==")
        except ValueError:
            raw = b""
        mac, text = raw[:32], raw[32:]
        as_issued = _encoded(raw) == token
        if not (hmac.compare_digest(mac, self._mac(scope, text)) and as_issued):
            raise invalid("NextToken", "no answer to this query has given it")
        created_at, id_ = json.loads(text)
        return created_at, id_

    def _mac(self, scope: str, text: bytes) -> bytes:
        return hmac.digest(self._secret, scope.encode() + b"\0" + text, hashlib.sha256)


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _numbered(query: Paging, ordered: Sequence[Listed]) -> list[Mapping[str, Any]]:
    if query.NextToken or query.MaxResults is not None:
        reason = "PageNumber and PageSize go without NextToken and MaxResults"
        raise invalid("PageNumber" if query.PageNumber is not None else "PageSize", reason)
    size = query.PageSize or DEFAULT_PAGE
    start = ((query.PageNumber or 1) - 1) * size
    return [one.item for one in ordered[start : start + size]]
