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
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

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


def main() -> int:
    """Print each room with its cap; return 1 if one is above it."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.js"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    lines = {
        name: code_lines(ROOT / name) for name in listed.stdout.split() if (ROOT / name).exists()
    }
    text = CAPS.read_text("utf-8")
    counts = {
        (folder, name): count
        for folder in sorted({cap["folder"] for cap in COUNT.finditer(text)})
        for name, count in counts_of(folder, lines).items()
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


def counts_of(folder: str, lines: dict[str, int]) -> dict[str, int]:
    """Return the counts of the Python files of a folder."""
    files = [Path(name) for name in lines if name.startswith(f"{folder}/") and name.endswith(".py")]
    sources = [(ROOT / path).read_text("utf-8") for path in files]
    trees = [ast.parse(source) for source in sources]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, IMPORTS)]
    private = [
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and re.match("_[^_]", node.name)
    ]
    words = Counter(re.findall(r"\b_\w+", "\n".join(sources)))
    bound = Counter(name for tree in trees for node in ast.walk(tree) for name in names_of(node))
    stems = Counter(path.name for path in files if not path.name.startswith("__"))
    return {
        "imports in functions": sum(len(imports_in_functions(tree)) for tree in trees),
        "private functions used once": sum(words[name] == 2 for name in private),
        "import lines, per mille": 1000
        * sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
        // sum(lines[str(path)] for path in files),
        "vague names": sum(bound[name] for name in VAGUE),
        "files under 60 lines": sum(
            lines[str(path)] < 60 and not path.name.startswith("__") for path in files
        ),
        "file names used more than twice": sum(count > 2 for count in stems.values()),
    }


def imports_in_functions(tree: ast.AST) -> set[ast.AST]:
    """Return the imports that are inside a function."""
    functions = (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))
    return {
        node for function in functions for node in ast.walk(function) if isinstance(node, IMPORTS)
    }


def names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, without leading underscores."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id.lstrip("_")
    elif isinstance(node, ast.arg):
        yield node.arg.lstrip("_")
    elif isinstance(node, FUNCTIONS):
        yield node.name.lstrip("_")


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


def lowered_count(cap: re.Match[str], counts: dict[tuple[str, str], int]) -> str:
    """Return the line of a count with its cap lowered to today's figure."""
    most = min(int(cap["most"]), counts[cap["folder"], cap["name"]])
    return f'"{cap["folder"]}"."{cap["name"]}" = {most}'


if __name__ == "__main__":
    sys.exit(main())
