"""A test module: a function with the statements of calls, and the imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from urllib.parse import urlsplit

from doublecheck import atomic_files
from doublecheck.errors import SaveError
from doublecheck.saved_tests import repeating
from doublecheck.saved_tests.draft import PLATFORM, Draft
from doublecheck.saved_tests.literals import INDENT
from doublecheck.saved_tests.repeating import Repeats
from doublecheck.saved_tests.statements import Statements
from doublecheck.saved_tests.trial import FIXTURE
from doublecheck.wire.exchanges import Exchange, redacted

_LONGEST = 90
_DOCSTRING = "What was asked is answered as it was."


def save(exchanges: Iterable[Exchange], path: Path, *, repeat: bool = True) -> Path:
    """Write a test of the exchanges to a new file; return its path.

    With ``repeat`` the calls are repeated first, so that what changes is not asserted. Raises
    SaveError if the file exists, cannot be written, or would test nothing.
    """
    name, kept = function_name(path), list(exchanges)
    text = module(kept, name)
    if path.exists():
        raise SaveError(f"{path} is there already. Name another file, or remove it.")
    try:
        if repeat:
            found = repeating.repeated(module(kept, name, trial=True), path)
            text = module(kept, name, repeats=found)
        atomic_files.write(path, text)
    except OSError as error:
        raise SaveError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def module(
    exchanges: Iterable[Exchange],
    name: str,
    *,
    repeats: Repeats | None = None,
    trial: bool = False,
) -> str:
    """Return the text of a module with one test, without secrets.

    What ``repeats`` show to change is not asserted; a ``trial`` notes the values instead.
    """
    shown = [redacted(one) for one in exchanges]
    statements = Statements(Draft(_addresses(shown), repeats=repeats, trial=trial))
    blocks = [list(statements.of(one)) for one in shown]
    asked = [block for block in blocks if block]
    if all(line.startswith("#") for block in asked for line in block):
        raise SaveError("There is no call that a test could repeat.")
    if "References" in statements.imports:
        asked.insert(0, ["seen = References()", f'seen.add(platform.url, "{PLATFORM}")'])
    if repeats is not None:
        asked.insert(0, list(_about(repeats)))
    body = "\n\n".join(_indented(block) for block in asked)
    imports = statements.imports | ({"pytest"} if trial else set())
    return (
        "from __future__ import annotations\n\n"
        f"{_imports(imports)}\n\n"
        f"{_signature(name, trial)}\n"
        f'{" " * INDENT}"""{_DOCSTRING}"""\n{body}\n'
    )


def _signature(name: str, trial: bool) -> str:
    if not trial:
        return f"def {name}(platform: Platform) -> None:"
    repeats = f'@pytest.mark.parametrize("repetition", range({repeating.TIMES}))'
    return f"{repeats}\ndef {name}(platform: Platform, {FIXTURE}, repetition) -> None:"


def _about(repeats: Repeats) -> Iterator[str]:
    """Yield comments that say what is not asserted, and what was not found out."""
    if repeats.trouble is None:
        yield f"# The calls were repeated {repeating.TIMES} times when this was written: what changed"
        yield "# from one time to the next is not compared, or is ANY."
        return
    yield "# When this was written, the calls could not be repeated to the end:"
    yield f"# {ascii(repeats.trouble)[:_LONGEST]}"


def _imports(names: Set[str]) -> str:
    """Return the imports of names from their public modules."""
    places = {"doublecheck": ["Platform"]}
    for name in sorted(names - {"ANY", "pytest"}):
        place = "doublecheck.errors" if name.endswith("RefusedError") else "doublecheck.results"
        places.setdefault(place, []).append(name)
    ours = "".join(f"from {place} import {', '.join(ns)}\n" for place, ns in sorted(places.items()))
    standard = "from unittest.mock import ANY\n\n" if "ANY" in names else ""
    needs_pytest = {"RefusedError", "pytest"} & names
    return standard + ("import pytest\n" if needs_pytest else "") + ours


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
