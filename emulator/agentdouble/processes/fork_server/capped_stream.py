"""A kernel's stdout and stderr that stop at a limit, so that a flood ends where it begins.

The double caps what it keeps, but it would have to receive, verify and parse what it drops:
a print of 100 MB holds its event loop, and with it every other session, for half a second.
"""

from __future__ import annotations

from typing import Any

from ipykernel.iostream import OutStream

LIMIT = 8 * 1024 * 1024  # characters an execution and stream; well above what the double keeps


class CappedStream(OutStream):
    """Passes on at most ``LIMIT`` characters of each execution and drops the rest.

    What is cleared counts no more, or a long loop that shows its progress would end with nothing.
    """

    _about: Any = None
    _left = LIMIT

    def write(self, string: str) -> int:
        """Write to the stream, as far as the limit goes."""
        written, string = len(string), _encodable(string)
        about = (self.parent_header.get("msg_id"), self.session.cleared)
        if about != self._about:
            self._about, self._left = about, LIMIT
        if len(string) <= self._left:
            self._left -= len(string)
            super().write(string)
        else:
            super().write(string[: self._left])
            self._left = 0
        return written


def _encodable(text: str) -> str:
    """Return a text whose lone surrogates are escaped: with one, all of a message is lost."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
