"""Each action does on a real page what a person would do."""

from __future__ import annotations

from collections.abc import Iterator
from operator import not_
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.sandbox.browser import input_driver, keys
from tests.agentdouble.calling import DataPlane, data_plane, eventually
from tests.agentdouble.sandbox.browser.browsing import (
    AT_REST,
    TAKES_NOTES,
    Client,
    Page,
    client_of,
    data_url,
    instance_of,
)

pytestmark = pytest.mark.once

IN_FIELD = {"x": 20, "y": 110}


@pytest.fixture(scope="module")
def plane(browsing: Emulator) -> DataPlane:
    return data_plane(browsing, "actions")


@pytest.fixture(scope="module")
def client(plane: DataPlane) -> Iterator[Client]:
    with client_of(plane) as client:
        yield client


@pytest.fixture
def page(client: Client, plane: DataPlane) -> Page:
    """A page that takes notes, the mouse in its upper left corner."""
    page = client.page()
    page.go(data_url(TAKES_NOTES))
    act(plane, "MOVE_TO", x=0, y=0)
    page.evaluate("notes.length = 0")
    return page


def act(plane: DataPlane, action_type: str, **fields: Any) -> None:
    answer = plane.post("/v1/browser/actions", action_type=action_type, **fields)
    done = {"status": "success", "action_performed": action_type}
    assert (
        200,
        {
            "success": True,
            "message": f"{action_type} was performed",
            "data": done,
            "hint": None,
            **done,
        },
    ) == (answer.status_code, answer.json())


def width_in_front(plane: DataPlane) -> int | None:
    """Return how wide the page in front is, where it says so."""
    size = plane.get("/v1/browser/info").json()["data"]["page_viewport"]
    return None if size is None else int(size["width"])


def notes(page: Page) -> list[str]:
    """Return what the page has noted, when it has got all that was done."""
    found: list[str] = page.evaluate(f"{AT_REST}.then(() => notes)")
    return found


@pytest.mark.parametrize(
    ("done", "noted"),
    [
        ([("MOVE_TO", {"x": 30, "y": 40})], ["mousemove 30,40 0"]),
        (
            [("MOVE_TO", {"x": 30, "y": 40}), ("MOVE_REL", {"x_offset": -5, "y_offset": 2})],
            ["mousemove 30,40 0", "mousemove 25,42 0"],
        ),
        (
            [("CLICK", {"x": 30, "y": 40})],
            [
                "mousemove 30,40 0",
                "mousedown 30,40 0 holding 1",
                "mouseup 30,40 0",
                "click 30,40 0",
            ],
        ),
        (
            [("MOVE_TO", {"x": 7, "y": 8}), ("CLICK", {"button": "middle"})],
            ["mousemove 7,8 0", "mousedown 7,8 1 holding 4", "mouseup 7,8 1"],
        ),
        (
            [("RIGHT_CLICK", {"x": 30, "y": 40})],
            [
                "mousemove 30,40 0",
                "mousedown 30,40 2 holding 2",
                "contextmenu 30,40 2 holding 2",
                "mouseup 30,40 2",
            ],
        ),
        (
            [("MOVE_TO", {"x": 3, "y": 4}), ("MOUSE_DOWN", {}), ("MOUSE_UP", {})],
            ["mousemove 3,4 0", "mousedown 3,4 0 holding 1", "mouseup 3,4 0", "click 3,4 0"],
        ),
    ],
    ids=lambda value: value[-1][0] if isinstance(value[0], tuple) else "",
)
def test_the_mouse_does_what_it_is_told(
    plane: DataPlane, page: Page, done: list[tuple[str, dict[str, Any]]], noted: list[str]
) -> None:
    """SBX-11: positions, buttons and their order."""
    for action_type, fields in done:
        act(plane, action_type, **fields)

    assert noted == [note for note in dict.fromkeys(notes(page)) if not note.startswith("auxclick")]


@pytest.mark.parametrize(
    ("action_type", "fields", "clicks", "double_clicks"),
    [
        ("CLICK", {"num_clicks": 2}, 2, 1),
        ("CLICK", {"num_clicks": 3}, 3, 1),
        ("DOUBLE_CLICK", {}, 2, 1),
        ("CLICK", {"num_clicks": None, "button": None}, 1, 0),
    ],
)
def test_several_clicks_are_as_many(
    plane: DataPlane,
    page: Page,
    action_type: str,
    fields: dict[str, Any],
    clicks: int,
    double_clicks: int,
) -> None:
    """Two of them are a double click, three select a paragraph."""
    act(plane, action_type, x=30, y=40, **fields)

    noted = notes(page)
    assert (clicks, double_clicks) == (
        noted.count("click 30,40 0"),
        noted.count("dblclick 30,40 0"),
    )


@pytest.mark.parametrize(
    ("action_type", "fields"),
    [("DRAG_TO", {"x": 50, "y": 60}), ("DRAG_REL", {"x_offset": 40, "y_offset": 40})],
)
def test_a_drag_holds_the_button_all_the_way(
    plane: DataPlane, page: Page, action_type: str, fields: dict[str, Any]
) -> None:
    """The page sees the moves between, with the button held."""
    act(plane, "MOVE_TO", x=10, y=20)
    act(plane, action_type, **fields)

    noted = notes(page)
    moves = [note for note in noted if note.startswith("mousemove")]
    assert ["mousemove 10,20 0", "mousemove 50,60 0 holding 1"] == [moves[0], moves[-1]]
    assert len(moves) > 5
    assert all(move.endswith(" holding 1") for move in moves[1:])
    assert ["mousedown 10,20 0 holding 1", "mouseup 50,60 0"] == [
        note for note in noted if note.startswith(("mousedown", "mouseup"))
    ]


def test_the_wheel_scrolls_by_pixels_downwards(plane: DataPlane, page: Page) -> None:
    """U-BROWSER-SCROLL, its default."""
    act(plane, "SCROLL", dy=300)

    assert ["wheel 0,300"] == notes(page)
    assert 300 == page.evaluate(
        "new Promise((r) => scrollY ? r(scrollY) : onscrollend = () => r(scrollY))"
    )


@pytest.mark.parametrize(
    ("use_clipboard", "keystrokes"), [(True, 0), (None, 0), (False, len("Grüße, 你好"))]
)
def test_text_is_typed_or_put_in_at_once(
    plane: DataPlane, page: Page, use_clipboard: bool | None, keystrokes: int
) -> None:
    """Both write the same; only typing presses keys."""
    act(plane, "CLICK", **IN_FIELD)
    act(plane, "TYPING", text="Grüße, 你好", use_clipboard=use_clipboard)

    assert "Grüße, 你好" == page.evaluate("field.value")
    pressed = [note for note in notes(page) if note.startswith("keydown")]
    assert (keystrokes > 0) == bool(pressed)


def test_keys_are_pressed_held_and_combined(plane: DataPlane, page: Page) -> None:
    """PRESS, KEY_DOWN, KEY_UP and HOTKEY edit a text as a person would."""
    act(plane, "CLICK", **IN_FIELD)
    act(plane, "TYPING", text="one two")
    act(plane, "HOTKEY", keys=["ctrl", "a"])
    assert "one two" == page.evaluate("field.value.slice(field.selectionStart, field.selectionEnd)")
    act(plane, "PRESS", key="end")
    act(plane, "KEY_DOWN", key="shift")
    for _ in range(4):
        act(plane, "PRESS", key="left")
    act(plane, "KEY_UP", key="shift")
    act(plane, "PRESS", key="delete")

    assert "one" == page.evaluate("field.value")
    pressed = [note for note in notes(page) if note.startswith("key")]
    assert [
        *("keydown Control", "keydown a with Control", "keyup a with Control", "keyup Control"),
        *("keydown End", "keyup End", "keydown Shift"),
        *(("keydown ArrowLeft", "keyup ArrowLeft") * 4),
        *("keyup Shift", "keydown Delete", "keyup Delete"),
    ] == pressed


def test_every_name_of_a_key_is_one_that_can_be_pressed(plane: DataPlane, page: Page) -> None:
    """No name passes the check that the browser would not know."""
    for name in (*keys.NAMES, *"aZ0~+ -"):
        act(plane, "KEY_DOWN", key=name)
        act(plane, "KEY_UP", key=name)


def test_waiting_lasts_as_long_as_asked(plane: DataPlane, page: Page) -> None:
    """The page's own clock says so."""
    before = page.evaluate("performance.now()")
    act(plane, "WAIT", duration=0.2)

    assert page.evaluate("performance.now()") - before >= 200


def test_an_action_without_a_type_moves_the_mouse(plane: DataPlane, page: Page) -> None:
    """MOVE_TO is the published default."""
    answer = plane.post("/v1/browser/actions", x=11, y=12)

    assert "MOVE_TO" == answer.json()["action_performed"]
    assert ["mousemove 11,12 0"] == notes(page)


@pytest.mark.parametrize(("key", "answer"), [("enter", True), ("esc", False)])
def test_a_dialog_is_answered_by_its_keys(
    plane: DataPlane, page: Page, client: Client, key: str, answer: bool
) -> None:
    """It stays open until somebody does; Enter accepts it, Escape does not."""
    page.evaluate("setTimeout(() => { window.answer = confirm('Sure?') })")
    client.wait_for("Page.javascriptDialogOpening")
    act(plane, "PRESS", key=key)
    client.wait_for("Page.javascriptDialogClosed")

    assert answer is page.evaluate("window.answer")


def test_actions_follow_the_page_that_was_opened_last(plane: DataPlane, client: Client) -> None:
    """A new page comes in front; when it is closed, the one before is in front again."""
    first = client.page()
    first.go(data_url(TAKES_NOTES))
    context = client.call("Target.createBrowserContext")["browserContextId"]
    target = client.call("Target.createTarget", url="about:blank", browserContextId=context)
    second = Page(client, target["targetId"])
    size = {"width": 640, "height": 480, "deviceScaleFactor": 1, "mobile": False}
    client.call("Emulation.setDeviceMetricsOverride", second.session, **size)
    second.go(data_url(TAKES_NOTES))
    eventually(lambda: width_in_front(plane), lambda width: width == 640)  # another client sees it

    act(plane, "MOVE_TO", x=1, y=1)
    noted = notes(second)
    client.call("Target.disposeBrowserContext", browserContextId=context)
    act(plane, "MOVE_TO", x=2, y=2)

    assert (["mousemove 1,1 0"], ["mousemove 2,2 0"]) == (noted, notes(first))


def test_a_browser_whose_last_page_was_closed_gets_a_new_one(
    plane: DataPlane, client: Client
) -> None:
    """There is always something in front."""
    for target in client.pages():
        client.call("Target.closeTarget", targetId=target)
    eventually(client.pages, not_)

    act(plane, "MOVE_TO", x=1, y=1)

    assert 1 == len(client.pages())


def test_a_page_that_is_busy_is_a_failed_operation(
    browsing: Emulator,
    plane: DataPlane,
    page: Page,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HTTP 200 with success false, as the public sandbox has it."""
    monkeypatch.setattr(input_driver, "TIMEOUT_S", 0.1)
    busy = client.send("Runtime.evaluate", page.session, expression="while (true);")
    client.call("Browser.getVersion")  # the browser has passed on what came before

    answer = plane.post("/v1/browser/actions", action_type="CLICK", x=1, y=1)
    client.call("Runtime.terminateExecution", page.session)
    client.answer(busy)

    message = "The page in front did not do what was asked: the page did not do it within 0.1 s."
    assert (200, {"success": False, "message": message, "data": None, "hint": None}) == (
        answer.status_code,
        answer.json(),
    )
    assert instance_of(browsing, plane).state == "active"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"action_type": "JUMP"}, ["body"]),
        ({"action_type": "MOVE_TO", "x": 1}, ["body", "MOVE_TO", "y"]),
        ({"action_type": "MOVE_TO", "x": "left", "y": 1}, ["body", "MOVE_TO", "x"]),
        ({"action_type": "CLICK", "button": "fourth"}, ["body", "CLICK", "button"]),
        ({"action_type": "CLICK", "num_clicks": 4}, ["body", "CLICK", "num_clicks"]),
        ({"action_type": "CLICK", "num_clicks": 0}, ["body", "CLICK", "num_clicks"]),
        ({"action_type": "SCROLL", "dy": 1.5}, ["body", "SCROLL", "dy"]),
        ({"action_type": "TYPING"}, ["body", "TYPING", "text"]),
        ({"action_type": "PRESS", "key": "nokey"}, ["body", "PRESS", "key"]),
        ({"action_type": "HOTKEY", "keys": []}, ["body", "HOTKEY", "keys"]),
        ({"action_type": "HOTKEY", "keys": ["ctrl", "nokey"]}, ["body", "HOTKEY", "keys", 1]),
        ({"action_type": "HOTKEY", "keys": "ctrl"}, ["body", "HOTKEY", "keys"]),
        ({"action_type": "WAIT", "duration": 61}, ["body", "WAIT", "duration"]),
        ({"action_type": "WAIT", "duration": -1}, ["body", "WAIT", "duration"]),
    ],
)
def test_what_cannot_be_done_is_refused_by_the_name_of_the_field(
    plane: DataPlane, body: dict[str, Any], where: list[str | int]
) -> None:
    """422 in FastAPI's shape, before anything is done."""
    answer = plane.post("/v1/browser/actions", **body)

    assert (422, [where]) == (
        answer.status_code,
        [one["loc"] for one in answer.json()["detail"]],
    )
