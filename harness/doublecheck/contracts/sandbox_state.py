"""Code that leaves every kind of state in a session, and code that tells what of it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from doublecheck.contracts.sandboxes import JAVASCRIPT, TTL_S, Sandbox, printed_json, succeeded

_MAKE = """
import json, os, subprocess, sys, tempfile
import colorsys
kept = {mark!r}
def kept_function():
    return kept
class Kept:
    mark = kept
kept_object = Kept()
colorsys.mark = kept
sys.path.append('/' + kept)
os.environ['DOUBLECHECK_MARK'] = kept
home = os.getcwd()
for place in (home, tempfile.gettempdir()):
    with open(os.path.join(place, {file!r}), 'w') as file:
        file.write(kept)
os.makedirs(kept, exist_ok=True)
os.chdir(kept)
process = subprocess.Popen(['sleep', '600'])
print(json.dumps([home, tempfile.gettempdir()]))
"""
_LOOK = """
import json as _json, os as _os, sys as _sys
def _content(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None
def _call(name):
    return globals()[name]() if name in globals() else None
_mark = globals().get('kept')
_here = _os.path.basename(_os.getcwd())
_process = globals().get('process')
print(_json.dumps({{
    'variable': _mark,
    'function': _call('kept_function'),
    'object': getattr(globals().get('kept_object'), 'mark', None),
    'import': getattr(globals().get('colorsys'), 'mark', None),
    'module': getattr(_sys.modules.get('colorsys'), 'mark', None),
    'path of imports': next((one[1:] for one in _sys.path if one[1:] in {marks!r}), None),
    'environment': _os.environ.get('DOUBLECHECK_MARK'),
    'file at home': _content(_os.path.join({home!r}, {file!r})),
    'temporary file': _content(_os.path.join({tmp!r}, {file!r})),
    'working directory': _here if _here in {marks!r} else None,
    'background process': _mark if _process and _process.poll() is None else None,
}}))
"""
_MAKE_JAVASCRIPT = """
let kept = {mark};
const keptFunction = () => kept;
globalThis.keptGlobal = kept;
"""
_LOOK_JAVASCRIPT = """
console.log(JSON.stringify({
    "let of JavaScript": typeof kept === "undefined" ? null : kept,
    "function of JavaScript": typeof keptFunction === "undefined" ? null : keptFunction(),
    "global of JavaScript": globalThis.keptGlobal ?? null,
}));
"""
MARKS = ("one", "other")


@dataclass(frozen=True)
class Place:
    """Where a session keeps its files: its home and its temporary folder, and a file in both."""

    home: str
    tmp: str
    file: str


def leave(sandbox: Sandbox, mark: str, *, ttl_s: int | None = TTL_S) -> Place:
    """Leave every kind of state in a session, each with this mark, one of ``MARKS``."""
    file = f"doublecheck-{sandbox.session_id[:8]}"
    made = succeeded(sandbox.run(_MAKE.format(mark=mark, file=file), ttl_s=ttl_s))
    home, tmp = printed_json(made)
    javascript = _MAKE_JAVASCRIPT.format(mark=json.dumps(mark))
    succeeded(sandbox.run(javascript, JAVASCRIPT, ttl_s=ttl_s))
    return Place(home, tmp, file)


def seen(sandbox: Sandbox, place: Place, *, ttl_s: int | None = TTL_S) -> dict[str, Any]:
    """Return the mark that each kind of state has in a session, None where there is none."""
    look = _LOOK.format(home=place.home, tmp=place.tmp, file=place.file, marks=MARKS)
    python = printed_json(sandbox.run(look, ttl_s=ttl_s))
    javascript = printed_json(sandbox.run(_LOOK_JAVASCRIPT, JAVASCRIPT, ttl_s=ttl_s))
    return {**python, **javascript}


def with_mark(mark: str | None, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is seen where every kind of state has this mark."""
    return dict.fromkeys(seen, mark)
