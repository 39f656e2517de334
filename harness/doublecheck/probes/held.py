"""Code that runs in a session until it is let go."""

from __future__ import annotations

import math

from doublecheck.probes.probing import Probing


class Held:
    """Code that waits for a file, at most ``hold_s``; the session's bash makes the file."""

    def __init__(self, at: Probing, hold_s: float) -> None:
        self._at = at
        self._begun, self._go = (f"/tmp/{at.token}.{name}" for name in ("begun", "go"))  # noqa: S108
        self.timeout_s = math.ceil(hold_s) + 5
        self.code = (
            f"import os, time\nopen({self._begun!r}, 'w').close()\n"
            f"end = time.monotonic() + {hold_s}\n"
            f"while not os.path.exists({self._go!r}) and time.monotonic() < end: time.sleep(0.01)"
        )

    def wait_until_begun(self) -> None:
        """Return when it runs."""
        self._at.run(f"until [ -e {self._begun} ]; do sleep 0.02; done", "bash", ttl_s=None).ok()

    def let_go(self) -> None:
        """Let it end, if it still runs."""
        self._at.run(f"touch {self._go}", "bash", ttl_s=None)
