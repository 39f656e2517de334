"""The filters of the journal, for its routes and for ``agentdouble journal``.

The command also runs where the double is not installed, so this imports nothing of its server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from agentdouble.journal.entries import Entry

FILTERS: Mapping[str, Callable[[Entry, str], bool]] = {  # they look at what a short entry has
    "method": lambda entry, value: entry.method == value.upper(),
    "path": lambda entry, value: urlsplit(entry.url).path == value,
    "status": lambda entry, value: str(entry.status) == value,
    "action": lambda entry, value: value in parse_qs(urlsplit(entry.url).query).get("Action", ()),
    "unknown": lambda entry, value: value in entry.unknowns,
    "unread": lambda entry, value: value in entry.unread,
    "fault": lambda entry, value: value in entry.faults,
    "failure": lambda entry, value: value in entry.failures,
    "session": lambda entry, value: entry.session == value,
    "caused_by": lambda entry, value: str(entry.caused_by) == value,
}
