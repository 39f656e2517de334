"""A comparison as a page: self-contained, escaped, readable in light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from doublecheck.comparing.differences import Class, Difference
from doublecheck.exchanges import Exchange
from doublecheck.twinning.comparison import Compared, Comparison, Part
from doublecheck.twinning.tree import summary

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #8882;
  --bad: light-dark(#b3261e, #ff8a80); --odd: light-dark(#7b3fa0, #d7a6f5);
  --open: light-dark(#7a5b00, #e8c35a); --good: light-dark(#1b6e35, #7fd197); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; } .kind { white-space: nowrap; }
code, pre { font: 13px/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--faint); padding: .6rem; overflow: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 24rem; margin: .3rem 0; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; } .faint { opacity: .7; }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .both > div { min-width: 0; }
.class { font-weight: 600; margin-left: .6rem; }
.diverges { color: var(--bad); } .only-live, .only-double { color: var(--odd); }
.assumed { color: var(--open); } .same { color: var(--good); }
@media (max-width: 40rem) { .both { grid-template-columns: 1fr; } }
@media print { pre { max-height: none; } details { break-inside: avoid; } }
"""


def page(comparison: Comparison) -> str:
    """Return the page; what the platforms said is untrusted and stands in it as text."""
    parts = "".join(_part(part) for part in comparison.parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>doublecheck: {escape(comparison.cls.value)}</title>\n<style>{_STYLE}</style>\n"
        f"</head>\n<body>\n<h1>The double and the live platform{_class(comparison.cls)}</h1>\n"
        f"<p>double <code>{escape(comparison.double)}</code>, "
        f"live <code>{escape(comparison.live)}</code></p>\n"
        f"<p>{escape(summary(comparison))}</p>\n{parts}</body>\n</html>\n"
    )


def _part(part: Part) -> str:
    name = escape(part.name)
    if part.skipped:
        return f'<h2>{name}</h2>\n<p class="faint">Not carried out: {escape(part.skipped)}</p>\n'
    return f"<h2>{name}{_class(part.cls)}</h2>\n" + "".join(_call(call) for call in part.calls)


def _call(call: Compared) -> str:
    opened = "" if call.cls.harmless else " open"
    sides = "".join(
        f"<div><p>{side}</p>{_exchange(exchange)}</div>"
        for side, exchange in (("double", call.double), ("live", call.live))
    )
    return (
        f"<details{opened}><summary><code>{escape(call.operation)}</code>{_class(call.cls)}"
        f"</summary>\n{_table(call)}<details><summary>What was said</summary>"
        f'<div class="both">{sides}</div></details></details>\n'
    )


def _table(call: Compared) -> str:
    if not call.differences:
        return ""
    rows = "".join(_row(difference) for difference in call.differences)
    heads = "".join(f"<th>{name}</th>" for name in ("where", "what", "double", "live"))
    return f"<table><tr>{heads}</tr>{rows}</table>"


def _row(difference: Difference) -> str:
    because = f" ({escape(difference.because)})" if difference.because else ""
    return (
        f"<tr><td><code>{escape(difference.path)}</code></td>"
        f'<td class="kind {_slug(difference.cls)}">{escape(difference.cls.value)}{because}</td>'
        f"<td>{_value(difference.double)}</td><td>{_value(difference.live)}</td></tr>"
    )


def _exchange(exchange: Exchange | None) -> str:
    if exchange is None:
        return '<p class="faint">It did not come to this call.</p>'
    return "".join(f"<pre>{escape(one)}</pre>" for one in _told(exchange) if one)


def _told(exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    yield f"{request.method} {request.url}"
    yield request.content.decode("utf-8", "replace")
    yield f"HTTP {exchange.status}" if exchange.status else exchange.error or "no answer"
    yield exchange.body.decode("utf-8", "replace")


def _value(value: Any) -> str:
    return "" if value is None else f"<code>{escape(json.dumps(value, ensure_ascii=False))}</code>"


def _class(cls: Class) -> str:
    return f'<span class="class {_slug(cls)}">{escape(cls.value)}</span>'


def _slug(cls: Class) -> str:
    return cls.value.replace(" ", "-")
