"""Compare two JSON documents by structure: missing parts, other types and other values."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from doublecheck.comparing import volatile
from doublecheck.comparing.differences import Difference
from doublecheck.comparing.references import Pairs, parsed
from doublecheck.comparing.volatile import TIME

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PROSE = frozenset({"traceback"})  # for people; it has files and lines of the platform
_LARGEST_ALIGNED = 1_000_000  # pairs of elements; the alignment compares each of them


def compare(
    double: Any, live: Any, pairs: Pairs, path: str = "$", key: str = ""
) -> Iterator[Difference]:
    """Yield the differences of two documents in the order of the double's.

    Documents come from ``references.loaded``, which refuses one that is nested too deeply.
    """
    if isinstance(double, Mapping) and isinstance(live, Mapping):
        yield from _objects(double, live, pairs, path)
    elif isinstance(double, list) and isinstance(live, list):
        yield from _arrays(double, live, pairs, path, key)
    elif isinstance(double, str) and isinstance(live, str):
        yield from _strings(double, live, pairs, path, key)
    elif _type(double) != _type(live):
        yield Difference("type", path, shown(double, pairs, "double"), shown(live, pairs, "live"))
    elif double != live and not _both_named(double, live, pairs, key):
        yield Difference("value", path, double, live)


def shown(document: Any, pairs: Pairs, side: str) -> Any:
    """Return a document of one side with ids and times replaced by references."""
    references = pairs.double if side == "double" else pairs.live
    if isinstance(document, str):
        return _masked(document, pairs, side)
    if isinstance(document, Mapping):
        return {name: shown(value, pairs, side) for name, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [shown(value, pairs, side) for value in document]
    return (
        f"<{TIME}>"
        if volatile.noun_of(document) == TIME
        else references.known(str(document)) or document
    )


def _masked(text: str, pairs: Pairs, side: str) -> str:
    references = pairs.double if side == "double" else pairs.live
    return "".join(
        piece.text if piece.noun is None else references.known(piece.text) or f"<{piece.noun}>"
        for piece in volatile.pieces(references.replaced(text))
    )


def _objects(
    double: Mapping[str, Any], live: Mapping[str, Any], pairs: Pairs, path: str
) -> Iterator[Difference]:
    for name, value in double.items():
        where = path + _step(name)
        if name in live:
            yield from compare(value, live[name], pairs, where, name)
        else:
            yield Difference("only double", where, double=shown(value, pairs, "double"))
    for name, value in live.items():
        if name not in double:
            where = path + _step(name)
            yield Difference("only live", where, live=shown(value, pairs, "live"))


def _arrays(
    double: list[Any], live: list[Any], pairs: Pairs, path: str, key: str
) -> Iterator[Difference]:
    if key in _PROSE:
        return
    if len(double) == len(live):
        if _same_but_order(double, live, pairs):
            yield Difference(
                "order", path, shown(double, pairs, "double"), shown(live, pairs, "live")
            )
            return
        for index, (one, other) in enumerate(zip(double, live, strict=True)):
            yield from compare(one, other, pairs, f"{path}[{index}]", key)
        return
    yield from _aligned(double, live, pairs, path, key)


def _aligned(
    double: list[Any], live: list[Any], pairs: Pairs, path: str, key: str
) -> Iterator[Difference]:
    """Compare arrays of different lengths, matching elements that look alike."""
    for start, end, live_start, live_end in _alignment(double, live):
        both = min(end - start, live_end - live_start)
        for offset in range(both):
            where = f"{path}[{start + offset}]"
            yield from compare(double[start + offset], live[live_start + offset], pairs, where, key)
        for index in range(start + both, end):
            where = f"{path}[{index}]"
            yield Difference("only double", where, double=shown(double[index], pairs, "double"))
        for index in range(live_start + both, live_end):
            where = f"{path}[{index}]"
            yield Difference("only live", where, live=shown(live[index], pairs, "live"))


def _alignment(double: list[Any], live: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    if len(double) * len(live) > _LARGEST_ALIGNED:
        yield 0, len(double), 0, len(live)
        return
    ours, theirs = [_shape(one) for one in double], [_shape(one) for one in live]
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for _, start, end, live_start, live_end in matcher.get_opcodes():
        yield start, end, live_start, live_end


def _same_but_order(double: Sequence[Any], live: Sequence[Any], pairs: Pairs) -> bool:
    ours = [_written(shown(one, pairs, "double")) for one in double]
    theirs = [_written(shown(one, pairs, "live")) for one in live]
    return ours != theirs and len(set(ours)) == len(ours) and sorted(ours) == sorted(theirs)


def _strings(double: str, live: str, pairs: Pairs, path: str, key: str) -> Iterator[Difference]:
    if double == live:
        return
    inner, live_inner = parsed(double), parsed(live)
    if inner is not None and live_inner is not None:
        yield from compare(inner, live_inner, pairs, path, key)
        return
    noun, live_noun = volatile.noun_of(double, key), volatile.noun_of(live, key)
    if noun is not None and live_noun is not None and (noun == TIME) == (live_noun == TIME):
        if noun == TIME or pairs.link(double, live, noun):
            return
    elif _same_text(double, live, pairs):
        return
    yield Difference("value", path, _masked(double, pairs, "double"), _masked(live, pairs, "live"))


def _same_text(double: str, live: str, pairs: Pairs) -> bool:
    """Whether two texts are the same except for ids and times that match."""
    ours = list(volatile.pieces(pairs.double.replaced(double)))
    theirs = list(volatile.pieces(pairs.live.replaced(live)))
    if [one.noun for one in ours] != [one.noun for one in theirs]:
        return False
    together = list(zip(ours, theirs, strict=True))
    if any(one.text != other.text for one, other in together if one.noun is None):
        return False
    return all(
        one.text == other.text or one.noun == TIME or pairs.link(one.text, other.text, one.noun)
        for one, other in together
        if one.noun is not None
    )


def _both_named(double: Any, live: Any, pairs: Pairs, key: str) -> bool:
    noun, live_noun = volatile.noun_of(double, key), volatile.noun_of(live, key)
    if noun is None or noun != live_noun:
        return False
    return noun == TIME or pairs.link(str(double), str(live), noun)


def _type(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "boolean" if value is not None else "null"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else type(value).__name__


def _shape(value: Any) -> str:
    """Return the shape by which elements are matched."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_shape(one)}" for name, one in sorted(value.items())) + "}"
    if isinstance(value, list):
        return f"[{_shape(value[0]) if value else ''}]"
    return _type(value) if volatile.noun_of(value) else repr(value)


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _step(name: str) -> str:
    return f".{name}" if _WORD.fullmatch(name) else f"[{json.dumps(name)}]"
