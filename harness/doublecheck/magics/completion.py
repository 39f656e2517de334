"""The tab key on the lines of the magics and inside a cell that runs in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sized
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, completion_matcher

from doublecheck.magics import offering
from doublecheck.magics.offering import Offer

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

    from doublecheck.magics.platforms import Platforms

_MAGIC = "%%sandbox"
_CELL = re.compile(r"%%sandbox(?:\s|$)")
_BEHIND_CELL = re.compile(r"%%sandbox\s+(.*)", re.DOTALL)
_BEHIND_LINE = re.compile(r"\s*(?:[\w, ]+=\s*)?%sandbox\s+(.*)", re.DOTALL)
_BEFORE_ALL_OTHERS = 1_000

Matcher = Callable[["CompletionContext"], dict[str, Any]]


def matcher(platforms: Platforms) -> Matcher:
    """Return what IPython asks when the tab key is pressed."""

    @completion_matcher(identifier="doublecheck", priority=_BEFORE_ALL_OTHERS, api_version=2)
    def matches(context: CompletionContext) -> dict[str, Any]:
        try:
            offer = _offer(context, platforms)
        except Exception:
            offer = Offer("")
        return {"completions": []} if offer is None else _answer(offer)

    return matches  # type: ignore[no-any-return]


class _Nothing(Sized):
    """No completions: IPython lets a matcher keep others from answering only if it has some."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[SimpleCompletion]:
        return iter(())


def _offer(context: CompletionContext, platforms: Platforms) -> Offer | None:
    """Return what to offer, None where the magics have no say."""
    before = context.text_until_cursor
    lines = context.full_text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not _CELL.match(lines[first]):
        behind = _BEHIND_LINE.fullmatch(before)
        return offering.of_line(behind[1], platforms) if behind else None
    if context.cursor_line > first:
        above = "".join(f"{line}\n" for line in lines[first + 1 : context.cursor_line])
        after = "\n".join(
            [context.line_with_cursor[len(before) :], *lines[context.cursor_line + 1 :]]
        )
        options_line = lines[first].removeprefix(_MAGIC)
        return offering.of_code(above + before, after, options_line, platforms)
    behind = _BEHIND_CELL.fullmatch(before)
    return offering.of_cell(behind[1], platforms) if behind else None


def _answer(offer: Offer) -> dict[str, Any]:
    found = [SimpleCompletion(text=word, type="magic") for word in offer.words]
    return {
        "completions": found or _Nothing(),
        "matched_fragment": offer.fragment,
        "suppress": not offer.more,
        "ordered": True,
    }
