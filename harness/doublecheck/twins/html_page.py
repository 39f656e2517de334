"""A comparison as an HTML page: self-contained, escaped, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from doublecheck.comparing.differences import Class
from doublecheck.notebook.display.markup import Markup, element
from doublecheck.twins import html_parts
from doublecheck.twins.comparison import Comparison, Part

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #8882;
  --bad: light-dark(#b3261e, #ff8a80); --odd: light-dark(#7b3fa0, #d7a6f5);
  --open: light-dark(#7a5b00, #e8c35a); --good: light-dark(#1b6e35, #7fd197); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; } td:nth-child(2) { white-space: nowrap; }
code, pre { font: 13px/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--faint); padding: .6rem; overflow: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 24rem; margin: .3rem 0; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; } .faint { opacity: .7; }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .both > div { min-width: 0; }
.class { font-weight: 600; } h1 .class, h2 .class { margin-left: .6rem; }
summary .class { margin-left: .3rem; } td .class { font-weight: inherit; }
.both b { display: block; font-weight: inherit; margin: 1rem 0; }
.diverges { color: var(--bad); } .only-live, .only-double { color: var(--odd); }
.assumed { color: var(--open); } .same { color: var(--good); }
@media (max-width: 40rem) { .both { grid-template-columns: 1fr; } }
@media print { pre { max-height: none; } details { break-inside: avoid; } }
"""


def page(comparison: Comparison) -> str:
    """Return the page; answers of the platforms are untrusted and appear as text."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="viewport", content="width=device-width"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", f"doublecheck: {comparison.told}"),
        element("style", Markup(_STYLE)),
    )
    body = element(
        "body",
        element("h1", html_parts.TITLE, _verdict(comparison.cls, comparison.told)),
        element("p", html_parts.addresses(comparison, _LOOK)),
        element("p", html_parts.summary(comparison)),
        *(one for part in comparison.parts for one in _part(part)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _part(part: Part) -> Iterable[Markup]:
    if part.skipped:
        return element("h2", part.name), element("p", _quiet(html_parts.not_carried_out(part)))
    calls = (html_parts.call(call, _LOOK, opened=not call.cls.harmless) for call in part.calls)
    return element("h2", part.name, _verdict(part.cls)), *calls


def _verdict(cls: Class, told: str = "") -> Markup:
    told = told or cls.value
    return element("span", told, class_=f"class {told.replace(' ', '-')}")


def _quiet(text: str) -> Markup:
    return element("span", text, class_="faint")


def _folded(summary: str, *children: str | None, opened: bool = False) -> Markup:
    return element("details", element("summary", summary), *children, open=opened)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str | None]]) -> Markup:
    above = element("tr", *(element("th", head) for head in heads))
    below = (element("tr", *(element("td", one) for one in row)) for row in rows)
    return element("table", above, *below)


_LOOK = html_parts.Look(
    verdict=_verdict,
    code=partial(element, "code"),
    quiet=_quiet,
    text=partial(element, "pre"),
    value=partial(element, "code"),
    folded=_folded,
    table=_table,
    side=partial(element, "div"),
    sides=partial(element, "div", class_="both"),
)
