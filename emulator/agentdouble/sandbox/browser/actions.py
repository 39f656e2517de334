"""The sixteen mouse and keyboard actions of the public sandbox (SBX-11).

Coordinates are pixels from the upper left corner of the page in front.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from agentdouble import ledger
from agentdouble.sandbox import json_bodies
from agentdouble.sandbox.browser import keys

if TYPE_CHECKING:
    from agentdouble.sandbox.browser.input_driver import InputDriver

LONGEST_WAIT_S = 60
_NOTCH = 120  # pixels of one notch of a mouse wheel
_DRAG_STEPS = 10  # pages notice a drag by the moves between its ends

Button = Literal["left", "right", "middle"]
Number = Annotated[float, Field(allow_inf_nan=False)]
Key = Annotated[str, AfterValidator(keys.find)]


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True)

    @property
    def lasts_s(self) -> float:
        """The seconds that the action itself takes."""
        return 0


class MoveTo(_Asked):
    """Move the mouse to a point."""

    action_type: Literal["MOVE_TO"] = "MOVE_TO"
    x: Number
    y: Number

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await hand.move(self.x, self.y)


class MoveRel(_Asked):
    """Move the mouse by a distance."""

    action_type: Literal["MOVE_REL"]
    x_offset: Number
    y_offset: Number

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await hand.move(hand.x + self.x_offset, hand.y + self.y_offset)


class _AtPoint(_Asked):
    x: Number | None = None
    y: Number | None = None

    async def _click(self, hand: InputDriver, button: Button, times: int) -> None:
        await hand.move(hand.x if self.x is None else self.x, hand.y if self.y is None else self.y)
        await hand.mouse.click(hand.x, hand.y, button=button, click_count=times)


class Click(_AtPoint):
    """Click once, twice or three times; without a point, at the mouse's position."""

    action_type: Literal["CLICK"]
    button: Button | None = "left"
    num_clicks: Annotated[int, Field(ge=1, le=3)] | None = 1

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await self._click(hand, self.button or "left", self.num_clicks or 1)


class MouseDown(_Asked):
    """Press a button and hold it."""

    action_type: Literal["MOUSE_DOWN"]
    button: Button | None = "left"

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await hand.mouse.down(button=self.button or "left")


class MouseUp(_Asked):
    """Release a button."""

    action_type: Literal["MOUSE_UP"]
    button: Button | None = "left"

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await hand.mouse.up(button=self.button or "left")


class RightClick(_AtPoint):
    """Click with the right button."""

    action_type: Literal["RIGHT_CLICK"]

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await self._click(hand, "right", 1)


class DoubleClick(_AtPoint):
    """Click twice."""

    action_type: Literal["DOUBLE_CLICK"]

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await self._click(hand, "left", 2)


class DragTo(_Asked):
    """Drag from the mouse's position to a point."""

    action_type: Literal["DRAG_TO"]
    x: Number
    y: Number

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await _drag(hand, self.x, self.y)


class DragRel(_Asked):
    """Drag from the mouse's position by a distance."""

    action_type: Literal["DRAG_REL"]
    x_offset: Number
    y_offset: Number

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await _drag(hand, hand.x + self.x_offset, hand.y + self.y_offset)


class Scroll(_Asked):
    """Turn the wheel at the mouse's position (U-BROWSER-SCROLL)."""

    action_type: Literal["SCROLL"]
    dx: int = 0
    dy: int = 0

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        dx, dy = self.dx, self.dy
        if ledger.choose("U-BROWSER-SCROLL") == "notches-up":
            dx, dy = dx * _NOTCH, -dy * _NOTCH
        await hand.mouse.wheel(dx, dy)


class Typing(_Asked):
    """Type a text at the cursor, at once like a paste, or key by key."""

    action_type: Literal["TYPING"]
    text: str
    use_clipboard: bool | None = True

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        if self.use_clipboard is False:
            await hand.keyboard.type(self.text)
        else:
            await hand.keyboard.insert_text(self.text)


class Press(_Asked):
    """Press a key and release it."""

    action_type: Literal["PRESS"]
    key: Key

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await hand.press(self.key)


class KeyDown(_Asked):
    """Press a key and hold it."""

    action_type: Literal["KEY_DOWN"]
    key: Key

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await hand.keyboard.down(self.key)


class KeyUp(_Asked):
    """Release a key."""

    action_type: Literal["KEY_UP"]
    key: Key

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await hand.keyboard.up(self.key)


class Hotkey(_Asked):
    """Press keys one after the other, then release them in reverse order."""

    action_type: Literal["HOTKEY"]
    keys: Annotated[tuple[Key, ...], Field(min_length=1, max_length=8)]

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        held = []
        try:
            for key in self.keys:
                held.append(key)
                await hand.keyboard.down(key)
        finally:
            for key in reversed(held):
                await hand.keyboard.up(key)


class Wait(_Asked):
    """Do nothing for some seconds."""

    action_type: Literal["WAIT"]
    duration: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)]

    @property
    def lasts_s(self) -> float:
        """The seconds that the action itself takes."""
        return self.duration

    async def perform(self, hand: InputDriver) -> None:
        """Perform the action."""
        await asyncio.sleep(self.duration)


async def _drag(hand: InputDriver, x: float, y: float) -> None:
    await hand.mouse.down()
    try:
        await hand.move(x, y, steps=_DRAG_STEPS)
    finally:
        await hand.mouse.up()


Action = Annotated[
    MoveTo
    | MoveRel
    | Click
    | MouseDown
    | MouseUp
    | RightClick
    | DoubleClick
    | DragTo
    | DragRel
    | Scroll
    | Typing
    | Press
    | KeyDown
    | KeyUp
    | Hotkey
    | Wait,
    Field(discriminator="action_type"),
]
_ACTION: TypeAdapter[Action] = TypeAdapter(Action)
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def parse(body: bytes) -> Action:
    """Return the action in a request's body; raise pydantic's ValidationError."""
    asked = _OBJECT.validate_json(json_bodies.checked(body))
    return _ACTION.validate_python({"action_type": "MOVE_TO", **asked})  # the published default
