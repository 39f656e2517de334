"""A test module: a function with the statements of calls, and the imports."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from doublecheck import atomic_files
from doublecheck.errors import SaveError
from doublecheck.saved_tests.statements import INDENT, PLATFORM, Statements
from doublecheck.wire.exchanges import Exchange, redacted

_PYTEST = "import pytest\n"
_DOCSTRING = "What was asked is answered as it was."


def save(exchanges: Iterable[Exchange], path: Path) -> Path:
    """Write a test of the exchanges to a new file; return its path.

    Raises SaveError if the file exists, cannot be written, or would test nothing.
    """
    text = module(exchanges, function_name(path))
    if path.exists():
        raise SaveError(f"{path} is there already. Name another file, or remove it.")
    try:
        atomic_files.write(path, text)
    except OSError as error:
        raise SaveError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def module(exchanges: Iterable[Exchange], name: str) -> str:
    """Return the text of a module with one test, without secrets."""
    shown = [redacted(one) for one in exchanges]
    statements = Statements(_addresses(shown))
    blocks = [list(statements.of(one)) for one in shown]
    asked = [block for block in blocks if block]
    if all(line.startswith("#") for block in asked for line in block):
        raise SaveError("There is no call that a test could repeat.")
    if "References" in statements.imports:
        asked.insert(0, ["seen = References()", f'seen.add(platform.url, "{PLATFORM}")'])
    body = "\n\n".join(_indented(block) for block in asked)
    return (
        "from __future__ import annotations\n\n"
        f"{_PYTEST if 'RefusedError' in statements.imports else ''}"
        f"{_imports(statements.imports)}\n\n"
        f"def {name}(platform: Platform) -> None:\n"
        f'{" " * INDENT}"""{_DOCSTRING}"""\n{body}\n'
    )


def _imports(names: Iterable[str]) -> str:
    """Return the imports of names from their public modules."""
    places = {"doublecheck": ["Platform"]}
    for name in sorted(names):
        place = "doublecheck.errors" if name.endswith("RefusedError") else "doublecheck.results"
        places.setdefault(place, []).append(name)
    return "".join(f"from {place} import {', '.join(ns)}\n" for place, ns in sorted(places.items()))


def _addresses(exchanges: Iterable[Exchange]) -> set[str]:
    parts = [urlsplit(one.request.url) for one in exchanges]
    return {f"{one.scheme}://{one.netloc}" for one in parts if one.netloc}


def function_name(path: Path) -> str:
    """Return the name of the test in a file; raise SaveError if pytest would not collect it."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    if path.suffix != ".py" or not name.startswith("test_"):
        raise SaveError(f"pytest looks for test_*.py, and {path.name} is not named like that.")
    return name


def _indented(block: list[str]) -> str:
    return "\n".join(f"{' ' * INDENT}{line}" for line in block)
