"""Hold each room of the house to its cap in ``house.toml``: ``python .ci/house.py [--lower]``.

A room is a folder with all that is below it, or a pattern for the files of one folder. Lines are
lines of code: no blank lines, comments or docstrings. ``--lower`` lowers each cap to what is there.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAPS = ROOT / "house.toml"
ROOM = re.compile(r'^"(?P<room>.+)" = \{ lines = (?P<lines>\d+), files = (?P<files>\d+) \}$', re.M)
NO_CODE = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> int:
    """Print each room with its cap; return 1 if one is above it."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.js"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    lines = {
        name: code_lines(ROOT / name) for name in listed.stdout.split() if (ROOT / name).exists()
    }
    text = CAPS.read_text("utf-8")
    if "--lower" in sys.argv:
        CAPS.write_text(ROOM.sub(lambda cap: lowered(cap, lines), text), "utf-8")
        return 0
    above = [room for cap in ROOM.finditer(text) if (room := shown(cap, lines)) is not None]
    for room in above:
        print(f"{room} is above its cap in house.toml: remove or move what it does not need.")
    return int(bool(above))


def code_lines(path: Path) -> int:
    """Return the number of lines of code in a file."""
    source = path.read_text("utf-8")
    if path.suffix == ".js":
        without = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
        return sum(
            bool(line.strip()) and not line.strip().startswith("//")
            for line in without.splitlines()
        )
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            code.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(code)


def size(room: str, lines: dict[str, int]) -> tuple[int, int]:
    """Return the lines and the files of a room."""
    if "*" in room:
        inside = [
            n
            for name, n in lines.items()
            if fnmatch(name, room) and name.count("/") == room.count("/")
        ]
    else:
        inside = [n for name, n in lines.items() if name.startswith(f"{room}/")]
    return sum(inside), len(inside)


def shown(cap: re.Match[str], lines: dict[str, int]) -> str | None:
    """Print a room; return its name if it is above its cap."""
    room, most = cap["room"], (int(cap["lines"]), int(cap["files"]))
    now = size(room, lines)
    above = [
        f"{n - m} {what} too many"
        for n, m, what in zip(now, most, ("lines", "files"), strict=True)
        if n > m
    ]
    print(
        f"{room:42}{now[0]:7} of {most[0]:6} lines{now[1]:5} of {most[1]:4} files  {', '.join(above)}".rstrip()
    )
    return room if above else None


def lowered(cap: re.Match[str], lines: dict[str, int]) -> str:
    """Return the line of a room with its cap lowered to what is there."""
    now = size(cap["room"], lines)
    most = [min(n, int(m)) for n, m in zip(now, (cap["lines"], cap["files"]), strict=True)]
    return f'"{cap["room"]}" = {{ lines = {most[0]}, files = {most[1]} }}'


if __name__ == "__main__":
    sys.exit(main())
