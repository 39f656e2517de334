"""The registry of resources, tested with its own kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agentdouble.core.clock import Clock
from agentdouble.errors import ActionError
from agentdouble.state import Record, Registry, Resource, Store, times_of

pytestmark = pytest.mark.smoke


@dataclass(frozen=True, kw_only=True)
class Lamp(Resource):
    """A resource that can start only with a socket."""

    socket: bool = True


class NoLampError(Exception):
    """The lamp does not exist."""


@dataclass
class Lamps(Registry[Lamp]):
    """A registry that records its steps."""

    kind = "lamp"
    noun = "lamp"
    store: Store
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(Clock(), self.store)

    async def create(self, name: str, token: str | None = None, socket: bool = True) -> Lamp:
        fields = self._described(f"l-{name}", name, token, [name, socket])
        return await self._add(Lamp(**fields, socket=socket))

    async def unplug(self, id_: str) -> Lamp:
        return await self._change(id_, lambda lamp: replace(lamp, socket=False))

    def _unknown(self, name: str, by: str) -> NoLampError:
        return NoLampError(f"no {by} {name}")

    async def _restore(self, id_: str, record: Record) -> Lamp:
        return Lamp(**{**record, **times_of(record)})

    async def _start(self, new: Lamp) -> None:
        if not new.socket:
            raise ValueError("no socket")
        self.steps.append(f"start {new.name}")

    async def _exchange(self, before: Lamp, after: Lamp) -> None:
        self.steps.append(f"change {after.name}")

    async def _stop(self, lamp: Lamp) -> None:
        self.steps.append(f"stop {lamp.name}")


Doing = Callable[[Lamps], Coroutine[Any, Any, Any]]


def after(do: Doing, store: Store | None = None) -> tuple[Lamps, Sequence[str]]:
    """Change lamps; return them and the names that another registry restores."""

    async def restarted() -> tuple[Lamps, Sequence[str]]:
        lamps = Lamps(store or Store())
        await do(lamps)
        others = Lamps(lamps.store)
        await others.load()
        return lamps, [lamp.name for lamp in others.all()]

    return asyncio.run(restarted())


def test_changes_are_kept_in_memory_and_state() -> None:
    """The registry's hooks see each step."""

    async def do(lamps: Lamps) -> None:
        for name in ("red", "green", "blue"):
            await lamps.create(name)
        await lamps.unplug("l-green")
        await lamps.delete("l-red")

    lamps, records = after(do)

    steps = ["start red", "start green", "start blue", "change green", "stop red"]
    assert steps == lamps.steps
    assert ["green", "blue"] == records == [lamp.name for lamp in lamps.all()]
    assert (False, True) == (lamps.get("l-green").socket, lamps.named("blue").socket)


@pytest.mark.parametrize("by", ["id", "name"])
def test_an_unknown_resource_raises_the_kind_s_error(by: str) -> None:
    """Both by id and by name."""
    lamps = Lamps(Store())

    with pytest.raises(NoLampError, match=f"no {by} red"):
        {"id": lamps.get, "name": lamps.named}[by]("red")


def test_a_client_token_creates_one_resource() -> None:
    """Concurrent requests share it; a different request is refused."""

    async def do(lamps: Lamps) -> None:
        first, second = await asyncio.gather(lamps.create("red", "t"), lamps.create("red", "t"))
        assert first is second
        with pytest.raises(ActionError, match="another request, which made the lamp 'l-red'"):
            await lamps.create("green", "t")

    _, records = after(do)

    assert ["red"] == records


def test_a_reset_removes_every_resource() -> None:
    """Each is stopped and removed from the state."""

    async def do(lamps: Lamps) -> None:
        await lamps.create("red")
        await lamps.create("green")
        await lamps.reset()

    lamps, records = after(do)

    assert ["stop red", "stop green"] == lamps.steps[2:]
    assert ((), []) == (lamps.all(), records)
