"""What if: a request of the journal, sent again under another answer to an unknown.

Three doubles are started for it, with the running double's applications, tools and settings: two
under the answers in force, and one under the other. Where the first two differ, ids and times
differ; where they agree and the third does not, the other answer made the difference. Earlier
requests of the journal on which the request relies are sent to each first. The doubles end with
the question. Code of an application that was passed in runs in this process: what it keeps outside
of the application, such as in variables of its module, belongs to the running double, too.

==================  ==============================================================
``routes``          the question, its answer, and the refusals
``answering``       the three doubles, for a bounded time, and what is sent to each
``differences``     what differs between three answers
==================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TypeAlias

from pydantic import SecretStr

from agentdouble.settings import Settings
from agentdouble.signing import Credentials

# Called with answers to unknowns. To enter what it returns, the address of a double, blocks.
StartDouble: TypeAlias = Callable[[Mapping[str, str]], AbstractContextManager[str]]


def fresh_settings(
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
