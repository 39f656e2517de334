"""A minimal client of the Chrome DevTools Protocol, with only what a check needs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

_PATIENCE_S = 30.0


@contextmanager
def opened(cdp_url: str, page_url: str) -> Iterator[Page]:
    """Open a page in the browser that answers at a WebSocket URL; close it afterwards."""
    client = pytest.importorskip("websockets.sync.client", reason="not run: needs websockets")
    with client.connect(cdp_url, max_size=None) as connection:
        page = Page(connection)
        page.target = page.call("Target.createTarget", url="about:blank")["targetId"]
        attached = page.call("Target.attachToTarget", targetId=page.target, flatten=True)
        page.session = attached["sessionId"]
        try:
            page.load(page_url)
            yield page
        finally:
            page.session = None
            page.call("Target.closeTarget", targetId=page.target)


# Two frames, because an element that is not painted yet cannot be hit. An invisible page paints
# none.
_PAINTED = """Promise.race([
    new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))),
    new Promise(done => setTimeout(done, 1000)),
]).then(() => true)"""


def _is_loaded(event: dict[str, Any], loader: str) -> bool:
    told = event.get("params", {})
    return event.get("method") == "Page.lifecycleEvent" and (
        told.get("name"),
        told.get("loaderId"),
    ) == ("load", loader)


@dataclass
class Page:
    """A page of a browser; calls go to its session once there is one."""

    connection: ClientConnection
    target: str = ""
    session: str | None = None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def call(self, method: str, **params: Any) -> Any:
        """Call a method and return its result."""
        message: dict[str, Any] = {"id": next(self.numbers), "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        self.connection.send(json.dumps(message))
        while True:
            answer = json.loads(self.connection.recv(_PATIENCE_S))
            if answer.get("id") == message["id"]:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def pages(self) -> list[str]:
        """Return the addresses of all pages of the browser."""
        session, self.session = self.session, None
        try:
            return [str(one["url"]) for one in self.call("Target.getTargets")["targetInfos"]]
        finally:
            self.session = session

    def load(self, url: str) -> None:
        """Load a page and wait until it is visible and can be clicked."""
        self.call("Page.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        loader = self.call("Page.navigate", url=url)["loaderId"]
        while not _is_loaded(json.loads(self.connection.recv(_PATIENCE_S)), loader):
            pass
        self.call("Runtime.evaluate", expression=_PAINTED, awaitPromise=True)

    def click(self, x: int, y: int) -> None:
        """Click with the left button."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")
