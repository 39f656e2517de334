"""The registry of resources, with a kind of its own."""

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
    """A resource; only one that has a socket can start."""

    socket: bool = True


class NoLampError(Exception):
    """There is no such lamp."""


@dataclass
class Lamps(Registry[Lamp]):
    """Lamps, and what was begun and ended with them."""

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
    """Do something with lamps; return them with the names that another registry restores."""

    async def restarted() -> tuple[Lamps, Sequence[str]]:
        lamps = Lamps(store or Store())
        await do(lamps)
        others = Lamps(lamps.store)
        await others.load()
        return lamps, [lamp.name for lamp in others.all()]

    return asyncio.run(restarted())


def test_what_is_made_changed_and_deleted_is_kept_so() -> None:
    """Its kind is told of each step, in memory and in the state there is the same."""

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
def test_an_unknown_one_is_the_error_of_its_kind(by: str) -> None:
    """Whether it is looked up by its id or by its name."""
    lamps = Lamps(Store())

    with pytest.raises(NoLampError, match=f"no {by} red"):
        {"id": lamps.get, "name": lamps.named}[by]("red")


def test_a_client_token_makes_one_thing() -> None:
    """Two requests at once with the same token are one; another request with it is refused."""

    async def do(lamps: Lamps) -> None:
        first, second = await asyncio.gather(lamps.create("red", "t"), lamps.create("red", "t"))
        assert first is second
        with pytest.raises(ActionError, match="another request, which made the lamp 'l-red'"):
            await lamps.create("green", "t")

    _, records = after(do)

    assert ["red"] == records


def test_a_reset_leaves_nothing() -> None:
    """Each has been ended, in the state there is none."""

    async def do(lamps: Lamps) -> None:
        await lamps.create("red")
        await lamps.create("green")
        await lamps.reset()

    lamps, records = after(do)

    assert ["stop red", "stop green"] == lamps.steps[2:]
    assert ((), []) == (lamps.all(), records)
