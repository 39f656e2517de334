"""A double beside the running one, for one question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pydantic import SecretStr

from agentdouble.settings import Settings
from agentdouble.signing import Credentials


@dataclass(frozen=True)
class Beside:
    """How to start another double beside a running one.

    ``start`` is called with the answers to the unknowns and the ids of the tools that the other
    has, too. To enter and to leave what it returns, the address, blocks. ``tools`` returns the ids
    of the tools that the running double has.
    """

    start: Callable[[Mapping[str, str], Collection[str]], AbstractContextManager[str]]
    tools: Callable[[], Collection[str]]


def settings_beside(
    settings: Settings, credentials: Credentials, unknowns: Mapping[str, str]
) -> Settings:
    """Return the settings of a double that shares nothing with the running one.

    It has no runtimes: their programs may use the very files and ports of those that run.
    """
    changes = {
        "host": "127.0.0.1",
        "port": 0,
        "tls": False,
        "tls_directory": None,
        "console": False,
        "console_port": None,
        "state": "memory",
        "access_key": credentials.access_key,
        "secret_key": SecretStr(credentials.secret_key),
        "pool_size": 0,
        "reload": False,
        "runtimes": (),
        "faults": (),
        "profile": None,
        "unknowns": dict(unknowns),
    }
    return settings.model_copy(update=changes)
