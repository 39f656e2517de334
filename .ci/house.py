"""Check the sizes and counts in ``house.toml``: ``python .ci/house.py [--lower]``.

A room is a folder with everything below it, or a pattern for the files of one folder. Lines are
lines of code: no blank lines, comments or docstrings. A count is about the Python of one folder;
COUNTS says what each means. ``--lower`` lowers each cap to today's figure.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CAPS = ROOT / "house.toml"
ROOM = re.compile(r'^"(?P<room>.+)" = \{ lines = (?P<lines>\d+), files = (?P<files>\d+) \}$', re.M)
COUNT = re.compile(r'^"(?P<folder>.+)"\."(?P<name>.+)" = (?P<most>\d+)$', re.M)
COUNTS = {
    "imports in functions": "each should break a cycle or put off something slow or optional",
    "private functions used once": "the name should explain something; otherwise inline it",
    "import lines, per mille": "of the lines of code; httpx has 60, Starlette 70",
    "vague names": "variables, arguments and functions that are called what VAGUE lists",
    "files under 60 lines": "other than __init__.py and __main__.py",
    "file names used more than twice": "the name of a file should say which one it is",
}
VAGUE = frozenset(
    [
        "answered",
        "asked",
        "asking",
        "begun",
        "each",
        "every",
        "found",
        "gone",
        "given",
        "held",
        "kept",
        "known",
        "left",
        "made",
        "meant",
        "one",
        "ours",
        "said",
        "saying",
        "seen",
        "shown",
        "taken",
        "taking",
        "theirs",
        "told",
        "wanted",
        "what",
        "whom",
    ]
)
IMPORTS = (ast.Import, ast.ImportFrom)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Module(NamedTuple):
    """A Python file: its source, its nodes, and how many lines of code it has."""

    source: str
    nodes: list[ast.AST]
    lines: int


def main() -> int:
    """Print each room with its cap; return 1 if one is above it."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.js"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    modules, lines = {}, {}
    for name in listed.stdout.split():
        if not (ROOT / name).exists():
            continue
        source = (ROOT / name).read_text("utf-8")
        if name.endswith(".js"):
            lines[name] = script_lines(source)
        else:
            nodes = [*ast.walk(ast.parse(source))]
            lines[name] = code_lines(source, nodes)
            modules[name] = Module(source, nodes, lines[name])
    text = CAPS.read_text("utf-8")
    counts = {
        (folder, name): count
        for folder in sorted({cap["folder"] for cap in COUNT.finditer(text)})
        for name, count in counts_of(folder, modules).items()
    }
    if "--lower" in sys.argv:
        text = ROOM.sub(lambda cap: lowered(cap, lines), text)
        CAPS.write_text(COUNT.sub(lambda cap: lowered_count(cap, counts), text), "utf-8")
        return 0
    above = [room for cap in ROOM.finditer(text) if (room := shown(cap, lines)) is not None]
    for room in above:
        print(f"{room} is above its cap in house.toml: remove or move what it does not need.")
    for cap in COUNT.finditer(text):
        folder, name, most = cap["folder"], cap["name"], int(cap["most"])
        count = counts[folder, name]
        print(f"{folder:10} {name:40}{count:6} of {most:6}")
        if count > most:
            above.append(name)
            print(f"{folder} has too many {name}: {COUNTS[name]}.")
    return int(bool(above))


def counts_of(folder: str, modules: Mapping[str, Module]) -> dict[str, int]:
    """Return the counts of the Python files of a folder."""
    inside = {Path(n): module for n, module in modules.items() if n.startswith(f"{folder}/")}
    nodes = [node for module in inside.values() for node in module.nodes]
    imports = [node for node in nodes if isinstance(node, IMPORTS)]
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    in_functions = {
        node for function in functions for node in ast.walk(function) if isinstance(node, IMPORTS)
    }
    sources = "\n".join(module.source for module in inside.values())
    words = Counter(re.findall(r"\b_\w+", sources))
    bound = Counter(name for node in nodes for name in names_of(node))
    stems = Counter(path.name for path in inside if not path.name.startswith("__"))
    return {
        "imports in functions": len(in_functions),
        "private functions used once": sum(
            words[function.name] == 2 for function in functions if re.match("_[^_]", function.name)
        ),
        "import lines, per mille": 1000
        * sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
        // sum(module.lines for module in inside.values()),
        "vague names": sum(bound[name] for name in VAGUE),
        "files under 60 lines": sum(
            module.lines < 60 and not path.name.startswith("__") for path, module in inside.items()
        ),
        "file names used more than twice": sum(count > 2 for count in stems.values()),
    }


def names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, without leading underscores."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id.lstrip("_")
    elif isinstance(node, ast.arg):
        yield node.arg.lstrip("_")
    elif isinstance(node, FUNCTIONS):
        yield node.name.lstrip("_")


def code_lines(source: str, nodes: list[ast.AST]) -> int:
    """Return the number of lines of code in Python."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            code.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(code)


def script_lines(source: str) -> int:
    """Return the number of lines of code in JavaScript."""
    without = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    lines = map(str.strip, without.splitlines())
    return sum(bool(line) and not line.startswith("//") for line in lines)


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
        f"{n - m} {unit} too many"
        for n, m, unit in zip(now, most, ("lines", "files"), strict=True)
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


def lowered_count(cap: re.Match[str], counts: dict[tuple[str, str], int]) -> str:
    """Return the line of a count with its cap lowered to today's figure."""
    most = min(int(cap["most"]), counts[cap["folder"], cap["name"]])
    return f'"{cap["folder"]}"."{cap["name"]}" = {most}'


if __name__ == "__main__":
    sys.exit(main())
