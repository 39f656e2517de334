"""The settings of traitlets that every Python kernel of a session has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PYTHON: Mapping[str, Mapping[str, Any]] = {
    "HistoryManager": {"enabled": False},  # no sqlite file and no thread for it
    "IPCompleter": {"use_jedi": False},  # it would read all of Python's stubs first: 5 s
    "IPKernelApp": {"log_level": 40},
}
