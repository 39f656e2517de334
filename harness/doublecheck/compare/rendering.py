"""A comparison as text for a terminal, and as a page for browsers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from doublecheck.compare.differences import Class, Compared, Comparison, Difference, Part
from doublecheck.notebook.display.markup import Markup, element, framed, joined
from doublecheck.sanitize import without_controls
from doublecheck.wire.exchanges import Exchange

_FORMAT = "doublecheck-comparison/1"
_STYLES = {
    Class.DIVERGES: "bold red",
    Class.ONLY_LIVE: "magenta",
    Class.ONLY_DOUBLE: "magenta",
    Class.ASSUMED: "yellow",
    Class.SAME: "green",
}
_VALUE_CHARS = 120


def show(comparison: Comparison, console: Console) -> None:
    """Print the parts, calls and differences as a tree, and a line that sums it up."""
    tree = Tree(Text(f"double {comparison.double}, live {comparison.live}"))
    for part in comparison.parts:
        if part.skipped:
            tree.add(Text(f"{part.name}  skipped: {part.skipped}", "dim"))
            continue
        branch = tree.add(_labelled(part.name, part.cls))
        for call in part.calls:
            _add_call(branch, call)
    console.print(tree)
    console.print()
    console.print(Text(comparison.summary()))


def document(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as a document: the class of each call and its differences."""
    return {
        "format": _FORMAT,
        "double": comparison.double,
        "live": comparison.live,
        "class": comparison.outcome,
        "summary": {cls.value: count for cls, count in comparison.counts().items()},
        "parts": [_part(part) for part in comparison.parts],
    }


def _add_call(branch: Tree, call: Compared) -> None:
    twig = branch.add(_labelled(call.operation, call.cls))
    reasons = Counter(each.because for each in call.differences if each.because)
    for reason, count in reasons.items():
        twig.add(Text(f"{reason} explains {count} difference{'s' if count > 1 else ''}", "dim"))
    for difference in call.differences:
        if difference.because is None:
            twig.add(_difference(difference))


def _difference(difference: Difference) -> Text:
    text = Text(f"{difference.path}: {difference.kind}", _STYLES[difference.cls])
    if difference.kind != "only live":
        text.append(f"\n  double {_short(difference.double)}", "default")
    if difference.kind != "only double":
        text.append(f"\n  live   {_short(difference.live)}", "default")
    return text


def _labelled(name: str, cls: Class) -> Text:
    return Text.assemble(without_controls(name), "  ", (cls.value, _STYLES[cls]))


def _short(value: Any) -> str:
    written = without_controls(json.dumps(value, ensure_ascii=False))
    return written if len(written) <= _VALUE_CHARS else written[: _VALUE_CHARS - 1] + "…"


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "class": None if part.skipped else part.cls.value,
        "skipped": part.skipped,
        "calls": [
            {
                "operation": call.operation,
                "class": call.cls.value,
                "double": _exchange(call.double),
                "live": _exchange(call.live),
                "differences": [
                    {"class": difference.cls.value, **vars(difference)}
                    for difference in call.differences
                ],
            }
            for call in part.calls
        ],
    }


def _exchange(exchange: Exchange | None) -> dict[str, Any] | None:
    if exchange is None:
        return None
    request = exchange.request
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    return {
        "request": {
            "method": request.method,
            "url": request.url,
            "body": request.content.decode("utf-8", "replace"),
        },
        "status": exchange.status,
        "error": exchange.error,
        "content_type": headers.get("content-type"),
        "body": exchange.body.decode("utf-8", "replace"),
    }


_TITLE = "The double and the live platform"
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
        element("title", f"doublecheck: {comparison.outcome}"),
        element("style", Markup(_STYLE)),
    )
    addresses = (_code(comparison.double), _code(comparison.live))
    body = element(
        "body",
        element("h1", _TITLE, _verdict(comparison.cls, comparison.outcome)),
        element("p", _quiet("double "), addresses[0], _quiet(", live "), addresses[1]),
        element("p", comparison.summary()),
        *(child for part in comparison.parts for child in _html_part(part)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def frame(comparison: Comparison) -> Markup:
    """Return the page in a frame, for a notebook."""
    return framed(page(comparison))


def _html_part(part: Part) -> Iterator[Markup]:
    if part.skipped:
        yield element("h2", part.name)
        yield element("p", _quiet(f"skipped: {part.skipped}"))
        return
    yield element("h2", part.name, _verdict(part.cls))
    yield from (_call(call) for call in part.calls)


def _call(call: Compared) -> Markup:
    reasons = dict.fromkeys(each.because for each in call.differences if each.because)
    about = (_code(call.operation), _verdict(call.cls), _quiet(", ".join(reasons)))
    sides = element("div", _side("double", call.double), _side("live", call.live), class_="both")
    return element(
        "details",
        element("summary", joined(about, " ")),
        _differences(call.differences) if call.differences else None,
        element("details", element("summary", "Requests and answers"), sides),
        open=not call.cls.harmless,
    )


def _differences(differences: Sequence[Difference]) -> Markup:
    heads = element("tr", *(element("th", head) for head in ("where", "what", "double", "live")))
    return element("table", heads, *(_row(difference) for difference in differences))


def _row(difference: Difference) -> Markup:
    reason = None if difference.because is None else _quiet(f" {difference.because}")
    values = (
        None if value is None else _code(json.dumps(value, ensure_ascii=False, default=repr))
        for value in (difference.double, difference.live)
    )
    cells = (_code(difference.path), joined((_verdict(difference.cls), reason)), *values)
    return element("tr", *(element("td", cell) for cell in cells))


def _side(name: str, exchange: Exchange | None) -> Markup:
    heading = element("b", name)
    if exchange is None:
        return element("div", heading, _quiet("did not make this call"))
    request = exchange.request
    texts = (
        f"{request.method} {request.url}",
        request.content.decode("utf-8", "replace"),
        f"HTTP {exchange.status}" if exchange.status else exchange.error or "no answer",
        exchange.body.decode("utf-8", "replace"),
    )
    return element("div", heading, *(element("pre", text) for text in texts if text))


def _verdict(cls: Class, text: str = "") -> Markup:
    text = text or cls.value
    return element("span", text, class_=f"class {text.replace(' ', '-')}")


def _quiet(text: str) -> Markup:
    return element("span", text, class_="faint")


def _code(text: str) -> Markup:
    return element("code", text)
