"""Charts of a sandbox: those of plain data are drawn, and those that may load something are not."""

from __future__ import annotations

from typing import Any

import pytest

from doublecheck.notebook.display.outputs import safe

VEGA_LITE = "application/vnd.vegalite.v5+json"
VEGA = "application/vnd.vega.v5+json"
PLOTLY = "application/vnd.plotly.v1+json"
URL = "https://example.org/it"
ROWS = {"values": [{"a": 1, "b": URL}]}
BARS = {"data": ROWS, "mark": "bar", "encoding": {"x": {"field": "a", "type": "quantitative"}}}
FIGURE = {"data": [{"type": "bar", "x": ["a"], "y": [1]}], "layout": {}}

PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "bars": (VEGA_LITE, BARS),
    "altair": (
        VEGA_LITE,
        {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.20.1.json",
            "config": {"view": {"continuousWidth": 300}, "axis": {"labelFontSize": 12}},
            "usermeta": {"embedOptions": {"theme": "dark"}},
            "data": {"name": "data-1"},
            "datasets": {"data-1": [{"a": 1, "link": URL, "says": 'a "b" \\ c'}]},
            "vconcat": [
                {
                    "mark": {"type": "line", "point": True, "tooltip": True},
                    "encoding": {
                        "x": {"field": "a", "type": "quantitative", "axis": {"format": ".1%"}},
                        "color": {"condition": {"param": "p", "field": "a"}, "value": "gray"},
                        "tooltip": [{"field": "link", "type": "nominal"}],
                    },
                    "name": "view_1",
                },
                {"mark": "bar", "transform": [{"filter": {"param": "p"}}]},
            ],
            "params": [
                {"name": "p", "select": {"type": "interval", "on": "click"}, "views": ["view_1"]},
                {"name": "q", "select": "interval", "bind": "scales"},
            ],
        },
    ),
    "figure": (PLOTLY, FIGURE),
    "express": (
        PLOTLY,
        {
            "data": [
                {
                    "hovertemplate": "<b>a</b>=%{x}<br>b<=%{y}<extra></extra>",
                    "x": {"dtype": "i1", "bdata": "//8="},
                    "type": "scatter",
                }
            ],
            "layout": {
                "template": {
                    "data": {"choropleth": [{"type": "choropleth"}]},
                    "layout": {"mapbox": {"style": "light"}, "annotationdefaults": {}},
                },
                "xaxis2": {"title": {"text": "a"}},
            },
            "config": {"plotlyServerURL": "https://plot.ly", "responsive": True},
        },
    ),
}
LOADING: dict[str, tuple[str, dict[str, Any]]] = {
    "data": (VEGA_LITE, {**BARS, "data": {"url": "secret.json"}}),
    "data of a layer": (VEGA_LITE, {"layer": [{**BARS, "data": {"url": URL}}]}),
    "data of a lookup": (
        VEGA_LITE,
        {**BARS, "transform": [{"lookup": "a", "from": {"data": {"url": URL}, "key": "a"}}]},
    ),
    "data by expression": (VEGA_LITE, {**BARS, "data": {"values": {"signal": "load('a')"}}}),
    "named data by expression": (VEGA_LITE, {**BARS, "datasets": {"a": {"signal": "1"}}}),
    "images": (VEGA_LITE, {**BARS, "mark": "image", "encoding": {"url": {"field": "b"}}}),
    "images by configuration": (VEGA_LITE, {**BARS, "mark": {"type": "bar", "url": URL}}),
    "links": (VEGA_LITE, {**BARS, "encoding": {"href": {"field": "b"}}}),
    "a cursor": (VEGA_LITE, {**BARS, "mark": {"type": "bar", "cursor": f"url({URL}), auto"}}),
    "a style": (VEGA_LITE, {**BARS, "background": "url(it)"}),
    "a tooltip": (
        VEGA_LITE,
        {
            "data": {"values": [{"image": URL}]},
            "mark": {"type": "bar", "tooltip": {"content": "data"}},
        },
    ),
    "a tooltip of an object": (
        VEGA_LITE,
        {
            "data": {"values": [{"a": {"image": URL}}]},
            "mark": "bar",
            "encoding": {"tooltip": {"field": "a"}},
        },
    ),
    "a tooltip by title": (
        VEGA_LITE,
        {**BARS, "encoding": {"tooltip": [{"field": "b", "title": "image"}]}},
    ),
    "a tooltip by an escaped name": (
        VEGA_LITE,
        {**BARS, "encoding": {"tooltip": [{"field": "im\\age"}]}},
    ),
    "a tooltip by expression": (
        VEGA_LITE,
        {**BARS, "encoding": {"tooltip": {"value": {"expr": "merge(datum, {})"}}}},
    ),
    "an input field": (
        VEGA_LITE,
        {**BARS, "params": [{"name": "p", "bind": {"input": "image", "src": URL}}]},
    ),
    "an input field with a script": (
        VEGA_LITE,
        {**BARS, "params": [{"name": "p", "bind": {"input": "text", "onfocus": "alert(1)"}}]},
    ),
    "events": (
        VEGA_LITE,
        {**BARS, "params": [{"name": "p", "select": {"type": "point", "on": "a[alert()]"}}]},
    ),
    "an expression": (VEGA_LITE, {**BARS, "transform": [{"filter": "alert(1)"}]}),
    "an expression in a format": (
        VEGA_LITE,
        {**BARS, "encoding": {"text": {"field": "a", "format": "%Y') + alert('"}}},
    ),
    "options": (VEGA_LITE, {**BARS, "usermeta": {"embedOptions": {"config": URL}}}),
    "a loader": (
        VEGA_LITE,
        {**BARS, "usermeta": {"embedOptions": {"theme": "dark", "loader": {"baseURL": URL}}}},
    ),
    "another language": (
        VEGA_LITE,
        {**BARS, "$schema": "https://vega.github.io/schema/vega/v5.json"},
    ),
    "vega": (VEGA, {"data": [{"name": "a", "url": URL}], "marks": []}),
    "vega by expression": (VEGA, {"signals": [{"name": "a", "update": "'ht' + 'tp'"}]}),
    "pictures": (PLOTLY, {**FIGURE, "layout": {"images": [{"source": URL}]}}),
    "pictures of a template": (
        PLOTLY,
        {**FIGURE, "layout": {"template": {"layout": {"images": [{"name": "a", "source": URL}]}}}},
    ),
    "pictures by a button": (PLOTLY, {**FIGURE, "layout": {"updatemenus": [{"buttons": []}]}}),
    "pictures in frames": (PLOTLY, {**FIGURE, "frames": [{"layout": {"images": []}}]}),
    "a picture as data": (PLOTLY, {"data": [{"type": "image", "source": URL}]}),
    "a map": (PLOTLY, {"data": [{"type": "scattermap"}], "layout": {"map": {"style": URL}}}),
    "a map without traces": (PLOTLY, {**FIGURE, "layout": {"mapbox": {"style": URL}}}),
    "areas": (PLOTLY, {"data": [{"type": "choropleth", "geojson": "secret.json"}]}),
    "a server": (PLOTLY, {**FIGURE, "config": {"topojsonURL": URL}}),
    "a label with a link": (PLOTLY, {"data": [{"text": "<a href='secret.json'>a</a>"}]}),
    "a label with a style": (PLOTLY, {"data": [{"text": "<span style='cursor:url(it)'>a"}]}),
    "a label in parts": (PLOTLY, {"data": [{"text": "%{meta[0]}%{meta[1]}", "meta": ["<", "a>"]}]}),
    "a label with a formula": (PLOTLY, {"data": [{"text": r"$\style{color:red}{x}$"}]}),
    "malformed traces": (PLOTLY, {"data": [{"type": ["bar"]}, 1], "layout": [1]}),
    "a malformed layout": (PLOTLY, {"data": [], "layout": {"template": {"layout": 1}}}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_chart_of_plain_data_passes_unchanged(name: str) -> None:
    """Addresses in its rows are only data."""
    kind, chart = PLAIN[name]

    assert ({kind: chart, "text/plain": "a"}, {}) == safe({kind: chart, "text/plain": "a"})


@pytest.mark.parametrize("name", LOADING)
def test_a_chart_that_may_load_something_becomes_text(name: str) -> None:
    """The text says how to show it."""
    kind, chart = LOADING[name]

    bundle, _ = safe({kind: chart, "text/plain": "a"})

    assert {"text/plain"} == set(bundle)
    assert bundle["text/plain"].startswith(f"a\n… {kind} is not drawn here")
    assert "display it as an image" in bundle["text/plain"]


def test_a_chart_keeps_its_other_types() -> None:
    """For example, Altair and Plotly can add a picture."""
    kind, chart = LOADING["data"]

    bundle, _ = safe({kind: chart, "text/html": "<b>a</b>", "image/png": "aa=="})

    assert {"text/plain", "text/html", "image/png"} == set(bundle)


def test_options_of_the_page_are_dropped() -> None:
    """JupyterLab would give them to Vega."""
    kind, chart = PLAIN["bars"]

    assert {} == safe({kind: chart}, {kind: {"embed_options": {"config": URL}}})[1]


@pytest.mark.parametrize("kind", [VEGA_LITE, PLOTLY])
def test_a_chart_may_be_deeply_nested(kind: str) -> None:
    """It is read without recursion."""
    chart: dict[str, Any] = {"data": []}
    for _ in range(100_000):
        chart = {"layer": [chart]}

    assert kind not in safe({kind: chart})[0]
    assert kind not in safe({kind: {"data": [{"type": [chart]}], "$schema": chart}})[0]


def test_a_map_becomes_json() -> None:
    """A page would load its tiles, and show its properties as HTML."""
    place = {"type": "Point", "coordinates": [1, 2]}

    assert {"text/plain": "a", "application/json": place} == (
        safe({"application/geo+json": place, "text/plain": "a"})[0]
    )
