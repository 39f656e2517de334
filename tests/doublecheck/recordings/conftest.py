from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentdouble import serving
from agentdouble.signing import Credentials
from doublecheck import Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.recordings import command
from doublecheck.recordings.recording_file import Writer
from tests.doublecheck.twins.conftest import application


class Recorder:
    """A recording proxy that serves: a client of it, and what it has written."""

    def __init__(self, target: Target, path: Path) -> None:
        self.path = path
        self.own = command.own_credentials()
        self._file = path.open("w", encoding="utf-8")
        self._writer = Writer(self._file, target.url)
        self._listener = serving.open_socket("127.0.0.1", 0)
        self.url = serving.address_of(self._listener)
        app = command.proxy(target, self.own, self._writer)
        self._server = serving.ServerThread(app, self._listener)
        self._server.start()
        self.tool_id = target.tool_id

    def client(self, credentials: Credentials | None = None) -> Platform:
        return Platform(Target(self.url, tool_id=self.tool_id, credentials=credentials or self.own))

    def stop(self) -> None:
        self._server.stop()
        self._file.close()


@pytest.fixture(scope="package")
def live() -> Iterator[Target]:
    """What is recorded: a double that is called live."""
    with serving_double(application("Hello.")) as target:
        yield dataclasses.replace(target, kind="live", name="live")


@pytest.fixture(scope="package")
def double() -> Iterator[Target]:
    """Where recordings are replayed."""
    with serving_double(application("Hello.")) as target:
        yield target


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Callable[[Target], Recorder]]:
    """Starts recording proxies."""
    with ExitStack() as stack:

        def start(target: Target) -> Recorder:
            made = Recorder(target, tmp_path / "recording.jsonl")
            stack.callback(made.stop)
            return made

        yield start
