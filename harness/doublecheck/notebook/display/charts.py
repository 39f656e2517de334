"""Which charts of a sandbox the page of a notebook may draw.

The page draws a chart with its reader's cookie, and a chart can make it load much: Vega loads data,
images, options, cursors and pictures in tooltips, and copies attributes such as ``onfocus`` to its
input fields; Plotly loads images and maps. So a chart passes only if each of its parts is known to
load nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

CHART = re.compile(r"application/vnd\.(plotly|vega|vegalite)\.v\d+\+json")

# no expressions, which can make up names, and no cursors, input fields, links or images
_WORDS = frozenset(
    """
    aggregate align anchor angle arc area as autosize axis background bandPosition bandSize
    bandwidth bar base baseline bin binSpacing bins bounds box boxplot category center circle clamp
    clip color column columns concat condition config constant continuousBandSize continuousHeight
    continuousWidth cornerRadius cornerRadiusBottomLeft cornerRadiusBottomRight cornerRadiusEnd
    cornerRadiusTopLeft cornerRadiusTopRight counts cumulative datum density description detail
    discreteBandSize discreteHeight discreteWidth diverging divide domain dx dy empty encoding
    encodings equal errorband errorbar exponent extent facet field fields fill fillOpacity filled
    flatten fold font fontSize fontStyle fontWeight frame geoshape gradient grid groupby gt gte
    hconcat header heatmap height ignorePeers impute innerRadius interpolate invalid joinaggregate
    key labels latitude latitude2 layer layout legend limit line lineBreak lineHeight loess
    longitude longitude2 lt lte mark maxbins median method minstep name nearest nice offset oneOf op
    opacity order ordinal orient outerRadius outliers padAngle padding paddingInner paddingOuter
    param params point projection quantile radius radius2 ramp range rangeMax rangeMin rect
    regression repeat resolve reverse round row rule sample scale scheme select shape size sort
    spacing spec square stack step steps stops stroke strokeCap strokeDash strokeJoin strokeOpacity
    strokeWidth subtitle tension text theta theta2 thickness tick ticks timeUnit title tooltip trail
    transform type valid value values vconcat view views width window x x1 x2 xError xError2 xOffset
    y y1 y2 yError yError2 yOffset zero zindex
    """.split()  # noqa: SIM905 (a list would take a line for each)
)
_STYLES = re.compile(
    r"(?:axis|domain|gradient|grid|header|label|legend|subtitle|symbol|tick|title)[A-Z](?!xpr)\w*"
)
_SCHEMA = re.compile(r"https://vega\.github\.io/schema/vega-lite/v[\d.]+\.json")
# the page loads the ``image`` of an object in a tooltip; a backslash can hide this name, and
# Vega-Lite writes some texts between quotes into expressions
_NOT_PLAIN = re.compile(r"""image|[\\"]|://|url\(""", re.I)
_EVENT = re.compile(r"\w+")

# those without maps and images
_TRACES = frozenset(
    """
    bar barpolar box candlestick carpet cone contour contourcarpet funnel funnelarea heatmap
    histogram histogram2d histogram2dcontour icicle indicator isosurface mesh3d ohlc parcats
    parcoords pie sankey scatter scatter3d scattercarpet scattergl scatterpolar scatterpolargl
    scattersmith scatterternary splom streamtube sunburst surface table treemap violin volume
    waterfall
    """.split()  # noqa: SIM905 (a list would take a line for each)
)
# no images, and no buttons and sliders, which can add them; a template's maps only style maps
_LAYOUT = re.compile(
    r"(?:[xy]axis|coloraxis|legend|polar|scene|smith|ternary)\d*|annotations|autosize|"
    r"autotypenumbers|(?:bar|box|funnel|violin|waterfall|scatter)(?:gap|groupgap|mode|norm)|"
    r"calendar|clickmode|colorscale|\w*colorway|dragmode|font|grid|height|hiddenlabels|"
    r"hoverdistance|hoverlabel|hovermode|margin|(?:paper|plot)_bgcolor|separators|shapes|"
    r"showlegend|spikedistance|template|title|uirevision|uniformtext|width"
)
_TEMPLATE = re.compile(
    rf"{_LAYOUT.pattern}|geo|map|mapbox|(?:annotation|shape|slider|updatemenu)defaults"
)
# plotly's Python library always names its server, which only a hidden button uses
_OPTIONS = re.compile("displayModeBar|displaylogo|plotlyServerURL|responsive|scrollZoom|staticPlot")
# tags with attributes, addresses, and commands of TeX
_MORE_THAN_LABELS = re.compile(
    r"<(?![\s\d=]|/?(?:b|br|em|extra|i|s|strong|sub|sup|u) ?/?>)|://|url\(|\\", re.I
)


def loads_nothing(kind: str, chart: Any) -> bool:
    """Whether a chart contains all of its data, and no part that loads or may load anything.

    A chart of Vega always might, because its expressions can make up addresses.
    """
    language = CHART.fullmatch(kind)
    if language is None or not isinstance(chart, Mapping):
        return False
    if language[1] == "vegalite":
        return _is_plain_vega_lite(chart)
    return language[1] == "plotly" and _is_plain_plotly(chart)


def _is_plain_vega_lite(chart: Mapping[str, Any]) -> bool:
    properties = dict(chart)
    schema = properties.pop("$schema", None)
    if schema is not None and not _matches(_SCHEMA, schema):
        return False  # the page believes it rather than the MIME type
    if any(isinstance(part, Mapping) and "image" in part for part in _parts(chart)):
        return False
    return all(map(_is_plain, _parts(properties, without=("data", "datasets", "usermeta"))))


def _is_plain(part: Any) -> bool:
    if isinstance(part, str):
        return not _NOT_PLAIN.search(part)
    return not isinstance(part, Mapping) or all(_is_known(*item) for item in part.items())


def _is_known(name: str, value: Any) -> bool:
    """Whether a property of Vega-Lite loads nothing, apart from the parts of its value."""
    if name == "data":
        return value is None or (isinstance(value, Mapping) and _are_rows(value))
    if name == "datasets":
        return isinstance(value, Mapping) and all(isinstance(it, list) for it in value.values())
    if name == "usermeta":
        return _is_theme(value)
    if name == "bind":
        return value in ("scales", "legend")
    if name in ("clear", "on"):
        return isinstance(value, bool) or _matches(_EVENT, value)
    if name == "filter":
        return isinstance(value, Mapping)
    if name.lower().endswith("format"):
        return isinstance(value, str) and "'" not in value
    return name in _WORDS or _matches(_STYLES, name)


def _are_rows(data: Mapping[str, Any]) -> bool:
    return data.keys() <= {"name", "values"} and isinstance(data.get("values", []), list)


def _is_theme(usermeta: Any) -> bool:
    """Whether options name a theme, and neither a loader nor the address of more options."""
    match usermeta:
        case {"embedOptions": {"theme": str(), **options}, **others}:
            return not options and not others
    return False


def _is_plain_plotly(figure: Mapping[str, Any]) -> bool:
    traces = figure.get("data")
    return (
        figure.keys() <= {"data", "layout", "config"}
        and isinstance(traces, list)
        and all(map(_is_plain_trace, traces))
        and _is_plain_layout(figure.get("layout", {}))
        and _has_only(_OPTIONS, figure.get("config", {}))
        and not any(
            isinstance(part, str) and _MORE_THAN_LABELS.search(part)
            for part in _parts(figure, without=("config",))
        )
    )


def _is_plain_trace(trace: Any) -> bool:
    kind = trace.get("type", "scatter") if isinstance(trace, Mapping) else None
    return isinstance(kind, str) and kind in _TRACES


def _is_plain_layout(layout: Any) -> bool:
    if not _has_only(_LAYOUT, layout):
        return False
    template = layout.get("template", {})
    return isinstance(template, Mapping) and _has_only(_TEMPLATE, template.get("layout", {}))


def _has_only(names: re.Pattern[str], properties: Any) -> bool:
    return isinstance(properties, Mapping) and all(map(names.fullmatch, properties))


def _parts(value: Any, without: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield a value and all values in it, except those of the properties named in ``without``."""
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Mapping):
            pending += [inner for name, inner in part.items() if name not in without]
        elif isinstance(part, (list, tuple)):
            pending += part


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
