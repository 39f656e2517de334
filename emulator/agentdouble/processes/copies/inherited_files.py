"""Replaces the open files and shared memory that a copy of a kernel inherits by its own.

After a fork, parent and child share the positions of open files, and memory that is mapped shared:
``numpy.memmap``, ``mmap``, and the values and locks of multiprocessing. A template saves the
content of files without a path at the fork, in unnamed files. Each copy then opens and maps its own
files at the same descriptors and addresses.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from agentdouble.processes.fork_server import linux

_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 (in which programs name shared memory)
_IN_MEMORY = ("/dev/zero", "/memfd:", "/SYSV", "/anon_hugepage", _SHARED_MEMORY)
_CHUNK = 1 << 20
# the other flags only matter when the file is first opened
_OF_USE = os.O_ACCMODE | os.O_APPEND | os.O_SYNC
_MAP = re.compile(
    rb"(?P<start>\w+)-(?P<end>\w+) (?P<may>[-rwx]{3})s (?P<offset>\w+) \S+ (?P<inode>\d+) *"
    rb"(?P<path>.*)"
)


@dataclass(frozen=True)
class _Descriptor:
    """An open file: its number, its flags and its position."""

    number: int
    flags: int
    position: int


@dataclass(frozen=True)
class _Mapping:
    """A range of memory that shows a file from ``offset`` on."""

    start: int
    size: int
    protection: int
    offset: int


@dataclass
class _File:
    """A file with the descriptors and the memory through which this process uses it.

    ``content`` is the descriptor of its content at the fork, for a file that copies cannot open by
    path.
    """

    path: str
    descriptors: list[_Descriptor] = field(default_factory=list)
    mappings: list[_Mapping] = field(default_factory=list)
    content: int | None = None

    @property
    def is_written(self) -> bool:
        """Whether this process can write to it."""
        opened = any(opened.flags & os.O_ACCMODE != os.O_RDONLY for opened in self.descriptors)
        return opened or any(mapping.protection & mmap.PROT_WRITE for mapping in self.mappings)


class InheritedFiles:
    """The open files of a template, which each copy replaces by its own."""

    def __init__(self) -> None:
        self._files = _files()
        for (path, inode), file in self._files.items():
            # By now, another file may be at the path, or none.
            if path.startswith(_SHARED_MEMORY) or not _is_at(path, inode):
                file.content = _unnamed_copy(file)

    def replace(self, moved: Mapping[str, str], *, shared_memory: bool) -> None:
        """Replace the descriptors and the memory in a copy.

        ``moved`` maps directories of the source to those of the copy. With ``shared_memory``, the
        copy has its own named shared memory. Raises OSError.
        """
        for file in self._files.values():
            descriptor = _open_own(file, moved_path(file.path, moved), shared_memory=shared_memory)
            for opened in file.descriptors:
                number = opened.number
                # Opened anew by its name in /proc: a duplicate would share the position.
                replacement = os.open(f"/proc/self/fd/{descriptor}", opened.flags & _OF_USE)
                os.lseek(replacement, opened.position, os.SEEK_SET)
                os.dup2(replacement, number, inheritable=os.get_inheritable(number))
                os.close(replacement)
            for mapping in file.mappings:
                linux.map_shared(
                    descriptor, mapping.start, mapping.size, mapping.protection, mapping.offset
                )
            os.close(descriptor)
            if file.content is not None:
                os.close(file.content)


def moved_path(path: str, moved: Mapping[str, str]) -> str:
    """Return where a path of the source is in the copy."""
    for old, new in moved.items():
        if path == old or path.startswith(f"{old}/"):
            return new + path[len(old) :]
    return path


def unshareable() -> list[str]:
    """Return the shared mappings that no copy can have, for example of devices."""
    paths = (os.fsdecode(line["path"]) for line in _shared_maps())
    return [
        path
        for path in paths
        if not path.startswith("/")
        or (path.startswith("/dev/") and not path.startswith(_IN_MEMORY))
    ]


def _files() -> dict[tuple[str, int], _File]:
    """Return the regular files that this process has open or maps shared, by path and inode."""
    files: dict[tuple[str, int], _File] = {}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):
            status = os.fstat(int(name))
            if int(name) > 2 and stat.S_ISREG(status.st_mode):
                path = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
                file = files.setdefault((path, status.st_ino), _File(path))
                position = os.lseek(int(name), 0, os.SEEK_CUR)
                file.descriptors.append(_Descriptor(int(name), _flags(name), position))
    for line in _shared_maps():
        start, end, offset = (int(line[name], 16) for name in ("start", "end", "offset"))
        path = os.fsdecode(line["path"])
        file = files.setdefault((path, int(line["inode"])), _File(path))
        file.mappings.append(_Mapping(start, end - start, _protection(line["may"]), offset))
    return files


def _shared_maps() -> Iterator[re.Match[bytes]]:
    with open("/proc/self/maps", "rb") as file:  # noqa: PTH123
        lines = file.read().splitlines()
    yield from filter(None, map(_MAP.fullmatch, lines))


def _protection(may: bytes) -> int:
    bits = (mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC)
    return sum(bit for bit, letter in zip(bits, may.decode(), strict=True) if letter != "-")


def _flags(descriptor: str) -> int:
    with open(f"/proc/self/fdinfo/{descriptor}") as file:  # noqa: PTH123
        return next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))


def _is_at(path: str, inode: int) -> bool:
    with suppress(OSError):
        return os.stat(path).st_ino == inode  # noqa: PTH116
    return False


def _open_own(file: _File, path: str, *, shared_memory: bool) -> int:
    """Return a descriptor of the copy's own version of a file."""
    if file.content is None:
        with suppress(OSError):  # its path no longer exists
            # O_NONBLOCK, because code may have put a FIFO there: to open one waits for a peer.
            return os.open(path, (os.O_RDWR if file.is_written else os.O_RDONLY) | os.O_NONBLOCK)
    elif shared_memory and path.startswith(_SHARED_MEMORY) and not path.endswith(" (deleted)"):
        named = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _copy_data(file.content, named)
        return named
    return _unnamed_copy(file)


def _unnamed_copy(file: _File) -> int:
    """Return the descriptor of a new unnamed file with the content of another one."""
    if file.path.startswith(_IN_MEMORY):
        new = os.memfd_create("copy")
    else:
        new = os.open(os.environ.get("TMPDIR", "/tmp"), os.O_TMPFILE | os.O_RDWR, 0o600)  # noqa: S108
    if file.content is not None:
        _copy_data(file.content, new)
    elif file.descriptors:
        opened = os.open(f"/proc/self/fd/{file.descriptors[0].number}", os.O_RDONLY)
        _copy_data(opened, new)
        os.close(opened)
    else:
        for mapping in file.mappings:
            _copy_memory(mapping, new)
    return new


def _copy_data(source: int, target: int) -> None:
    size, offset = os.fstat(source).st_size, 0
    os.truncate(target, size)
    while copied := os.sendfile(target, source, offset, _CHUNK):
        offset += copied


def _copy_memory(mapping: _Mapping, target: int) -> None:
    """Copy the content of a mapping to the same offset of a file."""
    end = mapping.offset + mapping.size
    os.truncate(target, max(end, os.fstat(target).st_size))
    # Not by its address: pages behind the end of the mapped file would raise SIGBUS.
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    done = 0
    with suppress(OSError):  # it has no content behind the end of its file
        while done < mapping.size:
            size = min(_CHUNK, mapping.size - done)
            data = os.pread(memory, size, mapping.start + done)
            if data.count(0) != len(data):  # empty pages need no memory
                os.pwrite(target, data, mapping.offset + done)
            done += len(data)
    os.close(memory)
