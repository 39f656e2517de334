from __future__ import annotations

import asyncio
import errno
import os

import pytest

from agentdouble import Clock
from agentdouble.errors import ResourceExhaustedError, TooManyInstancesError
from agentdouble.processes import capacity
from agentdouble.processes.capacity import Headroom
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings


@pytest.mark.parametrize(
    ("number", "resource"),
    [
        (errno.EMFILE, "open files"),
        (errno.EAGAIN, "processes"),
        (errno.ENOSPC, "disk"),
    ],
    ids=errno.errorcode.get,
)
def test_an_exhausted_resource_is_named(number: int, resource: str) -> None:
    """The error has the system's message and the remedy."""
    with pytest.raises(ResourceExhaustedError) as caught, capacity.named():
        raise OSError(number, os.strerror(number))

    assert resource == caught.value.resource
    assert f"Not enough {resource} for another session ({os.strerror(number)})" in str(caught.value)
    assert caught.value.remedy in str(caught.value)


def test_other_errors_are_passed_through() -> None:
    """A missing file exhausts nothing."""
    with pytest.raises(FileNotFoundError), capacity.named():
        raise FileNotFoundError(errno.ENOENT, "no such file")

    assert capacity.refusal_of(OSError("the kernel cannot be forked")) is None


@pytest.mark.parametrize("available", [0, 109])
def test_reserved_capacity_is_not_given_to_sessions(
    monkeypatch: pytest.MonkeyPatch, available: int
) -> None:
    """The double and its running sessions need it."""
    headroom = Headroom("memory", available=available, session=10, reserve=100)
    monkeypatch.setattr(capacity, "headrooms", lambda: iter([headroom]))

    with pytest.raises(ResourceExhaustedError, match="Not enough memory for another session"):
        capacity.check()


def test_the_scarcest_resource_limits_instances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names it, unless max_instances is set."""
    both = [Headroom("memory", 130, session=10, reserve=100), Headroom("processes", 9000, 10, 100)]
    monkeypatch.setattr(capacity, "headrooms", lambda: iter(both))

    async def refused(**settings: int) -> TooManyInstancesError:
        instances = SandboxSessions(Clock(), Settings.load(**settings))
        creations = (instances.get_or_create("t-1", f"u{number}") for number in range(9))
        answers = await asyncio.gather(*creations, return_exceptions=True)
        await instances.close()
        return next(answer for answer in answers if isinstance(answer, TooManyInstancesError))

    memory, count = asyncio.run(refused()), asyncio.run(refused(max_instances=5))

    assert (3, "memory", 5, None) == (memory.limit, memory.resource, count.limit, count.resource)
    assert "3 session instances are alive and this machine has not enough memory for more" in str(
        memory
    )


def test_this_machine_has_room_for_sessions() -> None:
    headrooms = [*capacity.headrooms()]

    assert {"open files", "processes", "memory"} >= {headroom.resource for headroom in headrooms}
    assert all(headroom.available >= 0 for headroom in headrooms)
    assert all(headroom.sessions > 0 for headroom in headrooms)
