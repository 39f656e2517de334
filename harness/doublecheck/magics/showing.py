"""What code says in a sandbox, shown as if a cell had said it here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from IPython.display import clear_output, publish_display_data

from doublecheck.notebook.display.bundles import safe

if TYPE_CHECKING:
    from doublecheck.live import LiveOutput


class Showing:
    """Shows what arrives; displays that are updated later are those of the same ``origin``."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def __call__(self, output: LiveOutput) -> None:
        """Show a message of a kernel; an error is left to whoever raises it."""
        show = getattr(self, f"_{output.msg_type}", None)
        if show is not None:
            show(output.content)

    def _stream(self, content: Mapping[str, Any]) -> None:
        stream = sys.stderr if content.get("name") == "stderr" else sys.stdout
        stream.write(str(content.get("text") or ""))

    def _display_data(self, content: Mapping[str, Any], update: bool = False) -> None:
        data, metadata = _bundle(content)
        publish_display_data(data, metadata, transient=self._transient(content), update=update)

    def _update_display_data(self, content: Mapping[str, Any]) -> None:
        self._display_data(content, update=True)

    def _execute_result(self, content: Mapping[str, Any]) -> None:
        sys.displayhook(RemoteValue(*_bundle(content)))

    def _clear_output(self, content: Mapping[str, Any]) -> None:
        clear_output(wait=bool(content.get("wait")))

    def _transient(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the id of a display, which must not be that of one of the notebook's own."""
        id_ = (content.get("transient") or {}).get("display_id")
        return {} if id_ is None else {"display_id": f"sandbox/{self._origin}/{id_}"}


class Passing(Showing):
    """Shows what is taken away when the code has ended: its last value is not the cell's own."""

    def _execute_result(self, content: Mapping[str, Any]) -> None:
        self._display_data(content)


class RemoteValue:
    """The last value of a cell, as its kernel shows it; the value itself stays there."""

    def __init__(self, data: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        self._data = dict(data)
        self._metadata = dict(metadata)

    def __repr__(self) -> str:
        return str(self._data.get("text/plain", ""))

    def _repr_mimebundle_(self, **_kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Show it as its kernel did."""
        return self._data, self._metadata


def _bundle(content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return safe(content.get("data") or {}, content.get("metadata"))
