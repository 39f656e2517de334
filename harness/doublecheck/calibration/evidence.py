"""An exchange as evidence: what was asked and answered, in a few lines, without its secrets."""

from __future__ import annotations

import re

from doublecheck.wire.exchanges import HIDDEN, Exchange, redacted

KEPT = 12  # exchanges for an unknown
_CUT = 2000  # characters of a body
_KEY = re.compile(r'("(?:Key|ApiKey|Authorization)"\s*:\s*")[^"]*')


def told(exchange: Exchange) -> str:
    """Return request and answer as text."""
    shown = redacted(exchange)
    request = shown.request
    came = shown.error if shown.status is None else f"HTTP {shown.status}"
    parts = [f"{request.method} {request.url}", _text(request.content), f"-> {came}"]
    return "\n".join([one for one in (*parts, _text(shown.body)) if one])


def _text(content: bytes) -> str:
    text = _KEY.sub(rf"\1{HIDDEN}", content.decode(errors="replace"))
    kept = "".join(
        one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in text
    )
    return kept if len(kept) <= _CUT else f"{kept[:_CUT]}... ({len(kept) - _CUT} more characters)"
