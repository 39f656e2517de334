"""The names of keys: the public sandbox's names and Playwright's."""

from __future__ import annotations

_NAMED = (
    *("Alt", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "Backspace", "CapsLock"),
    *("ContextMenu", "Control", "Delete", "End", "Enter", "Escape", "Home", "Insert", "Meta"),
    *("NumLock", "PageDown", "PageUp", "Pause", "PrintScreen", "ScrollLock", "Shift", "Tab"),
    *(f"F{number}" for number in range(1, 13)),
)
_ALIASES = {  # the names that desktops and PyAutoGUI use
    "add": "NumpadAdd",
    "altleft": "AltLeft",
    "altright": "AltRight",
    "apps": "ContextMenu",
    "cmd": "Meta",
    "command": "Meta",
    "ctrl": "Control",
    "ctrlleft": "ControlLeft",
    "ctrlright": "ControlRight",
    "decimal": "NumpadDecimal",
    "del": "Delete",
    "divide": "NumpadDivide",
    "down": "ArrowDown",
    "esc": "Escape",
    "left": "ArrowLeft",
    "menu": "ContextMenu",
    "multiply": "NumpadMultiply",
    "option": "Alt",
    "pgdn": "PageDown",
    "pgup": "PageUp",
    "prtsc": "PrintScreen",
    "return": "Enter",
    "right": "ArrowRight",
    "shiftleft": "ShiftLeft",
    "shiftright": "ShiftRight",
    "space": "Space",
    "subtract": "NumpadSubtract",
    "super": "Meta",
    "up": "ArrowUp",
    "win": "Meta",
    "winleft": "MetaLeft",
    "winright": "MetaRight",
    **{f"num{number}": f"Numpad{number}" for number in range(10)},
}
NAMES = {**{name.lower(): name for name in _NAMED}, **_ALIASES}


def find(name: str) -> str:
    """Return Playwright's name for a key; raise ValueError for an unknown key."""
    if len(name) == 1 and name.isascii() and name.isprintable():
        return "Space" if name == " " else name
    found = NAMES.get(name.lower().replace("_", ""))
    if found is None:
        known = ", ".join(sorted(NAMES))
        raise ValueError(f"{name!r} is no key: use a character of ASCII, or one of {known}")
    return found
