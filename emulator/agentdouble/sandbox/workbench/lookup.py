"""A search for a regular expression, in a process that can be killed: ``lookup.py FILE REGEX``."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from typing import Any

MOST = 10_000  # matches of one answer
_LONGEST = 16 * 1024 * 1024


def search(file: str, regex: str) -> dict[str, Any]:
    """Return the lines of a file that a regular expression matches, and their numbers (from 1)."""
    pattern = re.compile(regex)
    matches, numbers = [], []
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):  # a device may never end
            raise OSError(errno.EINVAL, "Not a regular file")
        for number, line in enumerate(iter(lambda: stream.readline(_LONGEST), b""), 1):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if pattern.search(text):
                matches.append(text)
                numbers.append(number)
            if len(matches) >= MOST:
                break
    return {"matches": matches, "line_numbers": numbers}


if __name__ == "__main__":
    try:
        answer = search(*sys.argv[1:])
    except OSError as error:
        answer = {"errno": error.errno, "reason": error.strerror}
    sys.stdout.write(json.dumps(answer))
