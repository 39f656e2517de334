"""The history of a kernel: its inputs, without a file.

IPython keeps its history in a database, which takes a file, a thread and a connection. A fork would
share the connection with its source. So the inputs are kept as they are, and a database is made of
them for each question and closed after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

from IPython.core.history import HistoryAccessor, HistoryManager

_INSERT = "INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?)"


def keep_history(shell: Any) -> None:
    """Let a shell that has just been made keep its history in this way."""
    shell.configurables.remove(shell.history_manager)
    shell.history_manager = SessionHistory(shell=shell, parent=shell)
    shell.configurables.append(shell.history_manager)
    inputs, outputs = shell.history_manager.input_hist_parsed, shell.history_manager.output_hist
    own = {"_ih": inputs, "In": inputs, "_oh": outputs, "Out": outputs}
    shell.user_ns.update(own, _dh=shell.history_manager.dir_hist)


class SessionHistory(HistoryManager):
    """The inputs of a kernel; ``%reset`` begins a new session in IPython's sense."""

    def __init__(self, **options: Any) -> None:
        self._written: list[tuple[int, int, str, str]] = []  # session, line, source, raw source
        self._sessions = 0
        super().__init__(**options)

    def new_session(self, conn: object = None) -> None:
        """Begin a session with the next number."""
        self._sessions += 1
        self.session_number = self._sessions

    def writeout_cache(self, conn: object = None) -> None:
        """Move the inputs since the last time to those that are asked for."""
        with self.db_input_cache_lock:
            self._written += [(self.session_number, *line) for line in self.db_input_cache]
            self.db_input_cache = []

    def _run_sql(self, *query: Any, **options: Any) -> Iterable[Any]:
        """Return what a database with the inputs answers."""
        made = HistoryAccessor(hist_file=":memory:", enabled=True)
        with closing(made.db):
            made.db.executemany(_INSERT, self._written)
            return [*made._run_sql(*query, **options)]
