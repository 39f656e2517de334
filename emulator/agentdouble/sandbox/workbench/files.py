"""``/v1/file/...``: reading, writing, listing and searching the session's files."""

from __future__ import annotations

import asyncio
import datetime as dt
import glob
import itertools
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from starlette.routing import Route

from agentdouble.sandbox.workbench import content, lookup, processes
from agentdouble.sandbox.workbench.content import Encoding, as_failure, failure
from agentdouble.sandbox.workbench.wire import Paths, RequestBody, WorkbenchAnswer, post

Sorted = Literal["name", "size", "modified", "type"]
MOST_ENTRIES = 10_000


SEARCH_PATIENCE_S = 5.0


def _unprivileged(sudo: bool) -> bool:
    if sudo:
        raise ValueError("sessions of this double have no sudo")
    return sudo


Sudo = Annotated[bool, AfterValidator(_unprivileged)]
Line = Annotated[int, Field(ge=0)]


class Read(RequestBody):
    """The lines of a file to read, from 0 on; ``end_line`` is not included."""

    file: str
    start_line: Line | None = None
    end_line: Line | None = None
    sudo: Sudo = False


class Write(RequestBody):
    """The content to write to a file."""

    file: str
    content: str
    encoding: Encoding = "utf-8"
    append: bool = False
    leading_newline: bool = False
    trailing_newline: bool = False
    sudo: Sudo = False


class Replace(RequestBody):
    """A text in a file and its replacement."""

    file: str
    old_str: str
    new_str: str
    sudo: Sudo = False


class Search(RequestBody):
    """A search for a regular expression in the lines of a file."""

    file: str
    regex: str
    sudo: Sudo = False


class Find(RequestBody):
    """A glob pattern for the paths below a directory."""

    path: str
    glob: str


class List(RequestBody):
    """The options for listing a directory; ``max_depth`` 1 lists only the directory itself."""

    path: str
    recursive: bool = False
    show_hidden: bool = True
    file_types: Sequence[str] | None = None
    max_depth: int | None = Field(None, ge=1)
    include_size: bool = True
    include_permissions: bool = False
    sort_by: Sorted = "name"
    sort_desc: bool = False


def entries(directory: str, options: List) -> list[dict[str, Any]]:
    """Return a directory's entries; raise OSError if it cannot be read.

    Links are listed as links and not followed. If a subdirectory cannot be read, its content is
    left out.
    """
    listed = [_entry(entry, options) for entry in _walk(directory, options, 1)]
    listed.sort(key=lambda entry: _key(entry, options.sort_by), reverse=options.sort_desc)
    for entry in listed:
        del entry["_modified"]
    return listed


def _walk(directory: str, options: List, depth: int) -> Iterator[os.DirEntry[str]]:
    remaining = MOST_ENTRIES
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
            if not options.show_hidden and entry.name.startswith("."):
                continue
            is_directory = entry.is_dir(follow_symlinks=False)
            if options.recursive and is_directory and depth != options.max_depth:
                waiting.append((entry.path, depth + 1))
            if not _is_wanted(entry.name, is_directory, options.file_types):
                continue
            yield entry
            remaining -= 1
            if remaining == 0:
                return


def _is_wanted(name: str, is_directory: bool, types: Sequence[str] | None) -> bool:
    if not types:
        return True
    return not is_directory and os.path.splitext(name)[1] in types  # noqa: PTH122


def _entry(entry: os.DirEntry[str], options: List) -> dict[str, Any]:
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
        "size": status.st_size if options.include_size and status and not is_directory else None,
        "modified_time": dt.datetime.fromtimestamp(modified, dt.timezone.utc).isoformat(),
        "permissions": stat.filemode(status.st_mode)
        if options.include_permissions and status
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


class Files:
    """The files of a session."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/file`` that use JSON."""
        return [
            post("/v1/file/read", Read, self.read),
            post("/v1/file/write", Write, self.write),
            post("/v1/file/replace", Replace, self.replace),
            post("/v1/file/search", Search, self.search),
            post("/v1/file/find", Find, self.find),
            post("/v1/file/list", List, self.list),
        ]

    async def read(self, body: Read) -> WorkbenchAnswer:
        """Return the content of a file."""
        with as_failure("read", body.file):
            path = self._paths.real(body.file)
            text = await asyncio.to_thread(content.read, path, body.start_line, body.end_line)
        return WorkbenchAnswer({"content": text, "file": body.file}, "File read successfully")

    async def write(self, body: Write) -> WorkbenchAnswer:
        """Write to a file; create the file and its directories if they are missing."""
        with as_failure("write", body.file):
            path = self._paths.real(body.file)
            data = content.encode(body.content, body.encoding)
            if body.encoding != "base64":
                leading, trailing = body.leading_newline, body.trailing_newline
                data = b"\n" * leading + data + b"\n" * trailing
            count = await asyncio.to_thread(content.write, path, data, append=body.append)
        return WorkbenchAnswer(
            {"file": body.file, "bytes_written": count}, "File written successfully"
        )

    async def replace(self, body: Replace) -> WorkbenchAnswer:
        """Replace all occurrences of a text in a file."""
        with as_failure("replace in", body.file):
            path = self._paths.real(body.file)
            count = await asyncio.to_thread(content.replace, path, body.old_str, body.new_str)
        message = f"Replacement completed, replaced {count} occurrences"
        return WorkbenchAnswer({"file": body.file, "replaced_count": count}, message)

    async def search(self, body: Search) -> WorkbenchAnswer:
        """Return the lines of a file that a regular expression matches."""
        with as_failure("search", body.file):
            re.compile(body.regex)
            result = await _search(body, self._paths.real(body.file))
        message = f"Search completed, found {len(result['matches'])} matches"
        return WorkbenchAnswer({"file": body.file, **result}, message)

    async def find(self, body: Find) -> WorkbenchAnswer:
        """Return the paths below a directory that match a glob pattern."""
        with as_failure("find in", body.path):
            path = self._paths.real(body.path)
            if "\0" in body.glob or body.glob.startswith("/"):
                raise ValueError("the pattern must be relative and must not contain NUL characters")
            matches = await asyncio.to_thread(find, path, body.glob)
        files = [_readable(self._paths.shown(match)) for match in matches]
        message = f"Search completed, found {len(files)} files"
        return WorkbenchAnswer({"path": body.path, "files": files}, message)

    async def list(self, body: List) -> WorkbenchAnswer:
        """Return the entries of a directory."""
        with as_failure("list", body.path):
            path = self._paths.real(body.path)
            listed = await asyncio.to_thread(entries, path, body)
        for entry in listed:
            entry["path"] = self._paths.shown(entry["path"])
        directories = sum(entry["is_directory"] for entry in listed)
        data = {
            "path": body.path,
            "files": listed,
            "total_count": len(listed),
            "directory_count": directories,
            "file_count": len(listed) - directories,
        }
        return WorkbenchAnswer(data, f"Found {len(listed)} items")


def find(path: str, pattern: str) -> list[str]:
    """Return the paths below a directory that a glob pattern matches, sorted; raise OSError."""
    os.close(os.open(path, os.O_RDONLY | os.O_DIRECTORY))
    search_pattern = os.path.join(glob.escape(path), pattern)  # noqa: PTH118
    root = os.path.realpath(path).rstrip("/") + "/"
    matches = glob.iglob(search_pattern, recursive=True)  # noqa: PTH207
    inside = (match for match in matches if os.path.realpath(match).startswith(root))
    return sorted(itertools.islice(inside, MOST_ENTRIES))


async def _search(body: Search, path: str) -> dict[str, Any]:
    """Search in a separate process, because a match of a regular expression may never end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", lookup.__file__, path, body.regex),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    processes.started.add(process.pid)
    try:
        output, _ = await asyncio.wait_for(process.communicate(), SEARCH_PATIENCE_S)
    except asyncio.TimeoutError:
        reason = TimeoutError(f"it took longer than {SEARCH_PATIENCE_S:g} s")
        raise failure("search", body.file, reason, "timeout") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        processes.started.discard(process.pid)
    result: dict[str, Any] = json.loads(output or b'{"errno": 12, "reason": "The search has died"}')
    if "errno" in result:
        raise OSError(result["errno"], result["reason"])
    return result
