"""A comparison as a JSON document."""

from __future__ import annotations

from typing import Any

from doublecheck.comparing.differences import Difference
from doublecheck.twins.comparison import Compared, Comparison, Part
from doublecheck.wire.exchanges import Exchange

FORMAT = "doublecheck-comparison/1"


def document(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as a document: the class of each call and its differences."""
    return {
        "format": FORMAT,
        "double": comparison.double,
        "live": comparison.live,
        "class": comparison.told,
        "summary": {cls.value: count for cls, count in comparison.counts().items()},
        "parts": [_part(part) for part in comparison.parts],
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "class": None if part.skipped else part.cls.value,
        "skipped": part.skipped,
        "calls": [_call(call) for call in part.calls],
    }


def _call(call: Compared) -> dict[str, Any]:
    return {
        "operation": call.operation,
        "class": call.cls.value,
        "double": None if call.double is None else _exchange(call.double),
        "live": None if call.live is None else _exchange(call.live),
        "differences": [_difference(one) for one in call.differences],
    }


def _exchange(exchange: Exchange) -> dict[str, Any]:
    request = exchange.request
    return {
        "request": {
            "method": request.method,
            "url": request.url,
            "body": request.content.decode("utf-8", "replace"),
        },
        "status": exchange.status,
        "error": exchange.error,
        "content_type": next(
            (v for name, v in exchange.headers.items() if name.lower() == "content-type"), None
        ),
        "body": exchange.body.decode("utf-8", "replace"),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "class": difference.cls.value,
        "kind": difference.kind,
        "path": difference.path,
        "double": difference.double,
        "live": difference.live,
        "because": difference.because,
    }
