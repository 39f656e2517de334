"""Completion with the tab key: on the lines of the magics, and in cells that run in the sandbox.

A completion never starts a double, waits, or appears in the journal. A cell that runs in the
sandbox does not offer the names of the notebook, because the sandbox does not have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, completion_matcher

from doublecheck.client._sync.platform import Platform
from doublecheck.notebook.magics import commands, options
from doublecheck.notebook.magics.platforms import Platforms

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

_PATIENCE_S = 2.0
_CELL = re.compile(r"%%sandbox(?:\s|$)")
_LINE = re.compile(r"\s*(?:[\w, ]+=\s*)?(%%?sandbox)\s+(.*)", re.DOTALL)
_BEFORE_ALL_OTHERS = 1_000

Matcher = Callable[["CompletionContext"], dict[str, Any]]
Offer = tuple[str, Sequence[str]]  # the fragment and its completions


def matcher(platforms: Platforms) -> Matcher:
    """Return the matcher that IPython calls for completions."""

    @completion_matcher(identifier="doublecheck", priority=_BEFORE_ALL_OTHERS, api_version=2)
    def matches(context: CompletionContext) -> dict[str, Any]:
        try:
            offer = _offer(context, platforms)
        except Exception:
            offer = ("", ())
        if offer is None:
            return {"completions": []}
        fragment, words = offer
        completions = [SimpleCompletion(text=word, type="magic") for word in words]
        return {
            "completions": completions or _Nothing(),
            "matched_fragment": fragment,
            "suppress": True,
            "ordered": True,
        }

    return matches  # type: ignore[no-any-return]


class _Nothing(Sized):
    """An empty result with length 1: for an empty list IPython would call other matchers."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[SimpleCompletion]:
        return iter(())


def _offer(context: CompletionContext, platforms: Platforms) -> Offer | None:
    """Return the completions, or None if the line does not belong to the magics."""
    before = context.text_until_cursor
    lines = context.full_text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if _CELL.match(lines[first]) and context.cursor_line > first:
        above = "".join(f"{line}\n" for line in lines[first + 1 : context.cursor_line])
        line_end = context.line_with_cursor[len(before) :]
        after = "\n".join([line_end, *lines[context.cursor_line + 1 :]])
        options_line = lines[first].removeprefix("%%sandbox")
        return _code(above + before, after, options_line, platforms)
    magic = _LINE.fullmatch(before)
    if magic is None:
        return None
    *earlier, fragment = magic[2].split(" ")
    if magic[1] == "%%sandbox":
        words = [name for name in options.option_names() if name not in earlier]
    else:
        words = [] if any(earlier) else [*commands.COMMANDS]
    return fragment, [word for word in words if word.startswith(fragment)]


def _code(before: str, after: str, options_line: str, platforms: Platforms) -> Offer:
    """Complete a cell's code in the session's kernel."""
    parsed = options.parse(options_line)
    named = platforms.started(parsed.on)
    if named is None or not named.platform.target.admin or parsed.language == options.BASH:
        return "", ()
    # a separate connection: the notebook's platform lists its requests
    with Platform(named.platform.target, timeout_s=_PATIENCE_S) as platform:
        sandbox = platform.sandbox(parsed.session, user_id=parsed.user, agent=parsed.agent)
        completion = sandbox.complete(before + after, len(before), parsed.language)
    return before[completion.start :], completion.matches
