"""Searches that may never end, each in a separate process that can be killed.

This module runs as a script: it reads one JSON object from standard input and writes one. A match
of a regular expression can take practically forever and blocks the interpreter meanwhile.
"""

from __future__ import annotations

import glob
import itertools
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

MOST = 10_000  # matches of one answer
_LONGEST = 16 * 1024 * 1024


def search(file: str, regex: str) -> dict[str, Any]:
    """Return the lines of a file that a regular expression matches, and their numbers (from 1)."""
    pattern = re.compile(regex)
    matches, numbers = [], []
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # noqa: PTH123
        for number, line in enumerate(iter(lambda: stream.readline(_LONGEST), b""), 1):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if pattern.search(text):
                matches.append(text)
                numbers.append(number)
            if len(matches) >= MOST:
                break
    return {"matches": matches, "line_numbers": numbers}


def find(path: str, pattern: str) -> dict[str, Any]:
    """Return the paths below a directory that a glob pattern matches, sorted."""
    with os.scandir(path):  # raises OSError if it cannot be read
        pass
    wanted = os.path.join(glob.escape(path), pattern)  # noqa: PTH118
    found = glob.iglob(wanted, recursive=True)  # noqa: PTH207
    inside = (one for one in found if _below(one, path))
    return {"files": sorted(itertools.islice(inside, MOST))}


def _below(found: str, path: str) -> bool:
    return os.path.realpath(found).startswith(os.path.realpath(path).rstrip("/") + "/")


def main() -> None:
    """Answer the one request in the standard input."""
    asked = json.load(sys.stdin)
    operations: dict[str, Callable[..., dict[str, Any]]] = {"search": search, "find": find}
    operation = operations[asked.pop("operation")]
    try:
        answer = operation(**asked)
    except re.error as error:
        answer = {"wrong": f"the regular expression is wrong: {error}"}
    except OSError as error:
        answer = {"errno": error.errno, "reason": error.strerror}
    text = json.dumps(answer)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
