"""The limits of this process's control groups, versions 1 and 2; Linux only."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MOUNTED = Path("/sys/fs/cgroup")
_NAMES = {  # files of a controller's limit and of its usage: in version 1, in version 2
    "pids": (("pids.max", "pids.current"), ("pids.max", "pids.current")),
    "memory": (
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ("memory.max", "memory.current"),
    ),
}
_RECLAIMED = ("total_inactive_file", "inactive_file")  # memory that the kernel can free if needed
_UNLIMITED = 1 << 60  # version 1 shows a number close to 2 ** 63


def left(controller: str) -> int | None:
    """Return how much of a resource this process may still use, None if there is no limit.

    The result is the minimum over its own control group and the groups above it.
    """
    found = [_left_in(group, names, controller) for group, names in _groups(controller)]
    return min((one for one in found if one is not None), default=None)


@functools.cache
def _groups(controller: str) -> tuple[tuple[str, tuple[str, str]], ...]:
    """Return the groups that limit this process, and the names of their files.

    The result is cached, because the search costs more than reading the files, and a process is
    usually moved between groups before it works.
    """
    found = _own_groups(controller)
    return tuple((str(g), names) for g, names in found if (g / names[0]).exists())


def _own_groups(controller: str) -> Iterator[tuple[Path, tuple[str, str]]]:
    first, second = _NAMES[controller]
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            yield from _upwards(_MOUNTED / controller, path, first)
        elif not controllers:
            yield from _upwards(_MOUNTED, path, second)


def _upwards(
    root: Path, path: str, names: tuple[str, str]
) -> Iterator[tuple[Path, tuple[str, str]]]:
    """Yield a group and the groups above it, as far as visible; a container shows only its own."""
    group = root / path.lstrip("/")
    while True:
        yield group, names
        if group == root:
            return
        group = group.parent


def _left_in(group: str, names: tuple[str, str], controller: str) -> int | None:
    limit = _number(f"{group}/{names[0]}")
    if limit is None or limit >= _UNLIMITED:
        return None
    used = _number(f"{group}/{names[1]}") or 0
    return max(0, limit - used + (_reclaimed(group) if controller == "memory" else 0))


def _reclaimed(group: str) -> int:
    fields = dict(line.split(" ", 1) for line in _lines(f"{group}/memory.stat"))
    return int(next((fields[name] for name in _RECLAIMED if name in fields), "0"))


def _number(file: str) -> int | None:
    with suppress(OSError, ValueError), open(file, "rb", buffering=0) as opened:  # noqa: PTH123
        return int(opened.read())  # "max", where there is no limit
    return None


def _lines(file: str) -> list[str]:
    with suppress(OSError), open(file, "rb", buffering=0) as opened:  # noqa: PTH123
        return opened.read().decode().splitlines()
    return []
