"""Entries of a double's journal as a test; the double's console asks for it by an entry point."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from doublecheck.recordings.exchange_files import exchanges
from doublecheck.saved_tests.module import module

_LONGEST_NAME = 60


def module_of(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a module with one test of complete entries; raise SaveError.

    The test asserts the answers, except for ids and times. Nothing is asked for it, so what else
    changes from one time to the next is asserted, too; ``save-test`` finds that out by repeating.
    """
    return module(exchanges(entries, "These are no entries of a journal"), _name(entries[-1]))


def _name(entry: Mapping[str, Any]) -> str:
    parts = urlsplit(str(entry["url"]))
    asked = parse_qs(parts.query).get("Action", [parts.path])[0]
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", asked)
    return f"test_{'_'.join(words or ['request']).lower()[:_LONGEST_NAME]}".rstrip("_")
