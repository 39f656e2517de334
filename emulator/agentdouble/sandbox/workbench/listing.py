"""The entries of a directory, with the requested details of each."""

from __future__ import annotations

import datetime as dt
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Sorted = Literal["name", "size", "modified", "type"]
MOST = 10_000


@dataclass(frozen=True)
class Wanted:
    """The options for listing a directory; ``max_depth`` 1 lists only the directory itself."""

    recursive: bool = False
    show_hidden: bool = True
    file_types: Sequence[str] | None = None
    max_depth: int | None = None
    include_size: bool = True
    include_permissions: bool = False
    sort_by: Sorted = "name"
    sort_desc: bool = False


def entries(directory: str, wanted: Wanted) -> list[dict[str, Any]]:
    """Return a directory's entries; raise OSError if it cannot be read.

    Links are listed as links and not followed. If a subdirectory cannot be read, its content is
    left out.
    """
    found = [_entry(one, wanted) for one in _walk(directory, wanted, 1)]
    found.sort(key=lambda entry: _key(entry, wanted.sort_by), reverse=wanted.sort_desc)
    for entry in found:
        del entry["_modified"]
    return found


def _walk(directory: str, wanted: Wanted, depth: int) -> Iterator[os.DirEntry[str]]:
    left = MOST
    waiting = [(directory, depth)]
    while waiting:
        current, depth = waiting.pop()
        try:
            with os.scandir(current) as scanned:
                inside = list(scanned)
        except OSError:
            if current == directory:
                raise
            continue
        for entry in inside:
            if not wanted.show_hidden and entry.name.startswith("."):
                continue
            is_directory = entry.is_dir(follow_symlinks=False)
            if wanted.recursive and is_directory and depth != wanted.max_depth:
                waiting.append((entry.path, depth + 1))
            if not _is_wanted(entry.name, is_directory, wanted.file_types):
                continue
            yield entry
            left -= 1
            if left == 0:
                return


def _is_wanted(name: str, is_directory: bool, types: Sequence[str] | None) -> bool:
    if not types:
        return True
    return not is_directory and os.path.splitext(name)[1] in types  # noqa: PTH122


def _entry(entry: os.DirEntry[str], wanted: Wanted) -> dict[str, Any]:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # removed meanwhile
        status = None
    is_directory = entry.is_dir(follow_symlinks=False)
    name, path = _readable(entry.name), _readable(entry.path)
    modified = 0.0 if status is None else status.st_mtime
    return {
        "name": name,
        "path": path,
        "is_directory": is_directory,
        "size": status.st_size if wanted.include_size and status and not is_directory else None,
        "modified_time": dt.datetime.fromtimestamp(modified, dt.timezone.utc).isoformat(),
        "permissions": stat.filemode(status.st_mode)
        if wanted.include_permissions and status
        else None,
        "extension": None if is_directory else os.path.splitext(name)[1] or None,  # noqa: PTH122
        "_modified": modified,
    }


def _readable(name: str) -> str:
    """Return a name that can be sent: bytes that are not UTF-8 are replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


def _key(entry: dict[str, Any], sort_by: Sorted) -> tuple[Any, ...]:
    first = {
        "name": "",
        "size": entry["size"] or 0,
        "modified": entry["_modified"],
        "type": (not entry["is_directory"], entry["extension"] or ""),
    }[sort_by]
    return (first, entry["path"])
