"""Reads the files of sessions while their code may change them.

Code of a session may replace a directory by a symbolic link at any moment, and a path that the
double followed would then lead to files of the host. So everything here is opened relative to an
open directory, one name at a time, and never through a link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_PATH = 4096  # characters; Linux has no longer ones
# O_NONBLOCK: opening a FIFO would wait for a process that writes to it.
_NO_LINK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Errors for a file that was removed, or replaced by another kind of file.
_REPLACED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL)


@contextmanager
def open_directory(root: str | Path, path: str = "") -> Iterator[int]:
    """Open a directory below ``root``; raise OSError if it is missing or behind a link."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in filter(None, path.split("/")):
            parent = descriptor
            descriptor = os.open(name, _NO_LINK | os.O_DIRECTORY, dir_fd=parent)
            os.close(parent)
        yield descriptor
    finally:
        os.close(descriptor)


def read_end(path: Path, size: int) -> bytes:
    """Return the last ``size`` bytes of a regular file; raise OSError for other files.

    Code of the session may own the file and its directory, but nothing above.
    """
    with os.fdopen(os.open(path, _NO_LINK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        file.seek(max(0, status.st_size - size))
        return file.read(size)


def copy_content(source: Path, target: Path) -> None:
    """Copy a directory's content, with owners, modes, times and hard links.

    ``target`` is empty and out of reach of any session. Files that disappear meanwhile are skipped.
    Raises OSError.
    """
    links: dict[tuple[int, int], str] = {}  # the copies of files that have several names
    directories = [""]
    for path in directories:  # which grows
        with _suppress_replaced(), open_directory(source, path) as opened:
            if len(path) > LONGEST_PATH:
                raise OSError(errno.ENAMETOOLONG, "its directories are nested too deeply")
            for name in {*os.listdir(opened)}:  # noqa: PTH208 (a changing list may repeat a name)
                with _suppress_replaced():
                    if _copy(opened, name, f"{target}{path}/{name}", links):
                        directories.append(f"{path}/{name}")
    for path in reversed(directories):  # last, because a change inside changes the time
        with _suppress_replaced(), open_directory(source, path) as opened:
            _copy_attributes(os.fstat(opened), f"{target}{path}")


def _copy(directory: int, name: str, target: str, links: dict[tuple[int, int], str]) -> bool:
    """Copy a file, or make the directory for a copy; return whether it is a directory."""
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    kind, file = stat.S_IFMT(status.st_mode), (status.st_dev, status.st_ino)
    if kind == stat.S_IFDIR:
        os.mkdir(target, 0o700)  # noqa: PTH102
        return True
    if file in links:
        os.link(links[file], target, follow_symlinks=False)
        return False
    if kind == stat.S_IFREG:
        _copy_regular(directory, name, target)
    elif kind == stat.S_IFLNK:
        Path(target).symlink_to(os.readlink(name, dir_fd=directory))
    else:
        os.mknod(target, status.st_mode)  # a FIFO or a socket: a session can make no device
    if status.st_nlink > 1:
        links[file] = target
    _copy_attributes(status, target)
    return False


def _copy_regular(directory: int, name: str, target: str) -> None:
    """Copy the data of a regular file, but not its holes."""
    with os.fdopen(os.open(name, _NO_LINK, dir_fd=directory), "rb", 0) as reading:
        status = os.fstat(reading.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it has been replaced")
        with open(target, "xb", 0) as writing:  # noqa: PTH123
            writing.truncate(status.st_size)
            for start, end in _data(reading.fileno(), status.st_size):
                os.lseek(writing.fileno(), start, os.SEEK_SET)
                while start < end and (
                    copied := os.sendfile(writing.fileno(), reading.fileno(), start, end - start)
                ):
                    start += copied


def _data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each range of a file that is not a hole."""
    start = end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # only a hole is left, or it has been truncated
                raise
            return
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, min(end, size)


def _copy_attributes(status: os.stat_result, target: str) -> None:
    if os.geteuid() == 0:
        os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        os.chmod(target, stat.S_IMODE(status.st_mode))  # noqa: PTH101
    times = status.st_atime_ns, status.st_mtime_ns
    os.utime(target, ns=times, follow_symlinks=False)


@contextmanager
def _suppress_replaced() -> Iterator[None]:
    """Ignore errors of a file that was removed or replaced by another kind of file."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REPLACED:
            raise
