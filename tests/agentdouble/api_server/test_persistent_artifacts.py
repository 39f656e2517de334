"""Artifacts in a state that outlives the process: where contents are, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.api_server.persistent_artifacts import LARGE
from agentdouble.processes.fork_server import signals
from tests.agentdouble.api_server.wire import AGENTS, sessions_of
from tests.agentdouble.calling import http

BIG = "ü" * LARGE
SMALL = "small"
NAMES = ("f", "../../f", "user:shared", "a/b/.part")


class Kept:
    """A state file and the directory beside it, where large contents go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "state.db"
        self.directory = folder / "state.db.artifacts"
        self.url = f"sqlite:///{self.file}"

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve from it; give the URL of a session's artifacts."""
        with Emulator(agents=AGENTS, state=self.url) as double:
            yield artifacts_of(double.url)

    def files(self) -> list[Path]:
        return sorted(self.directory.iterdir()) if self.directory.is_dir() else []


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "inner").mkdir()
    return Kept(tmp_path / "inner")


def artifacts_of(url: str) -> str:
    return f"{url}{sessions_of('ann')}/s1/artifacts"


def save(url: str, name: str, text: str) -> httpx.Response:
    return http.post(url, json={"filename": name, "artifact": {"text": text}}, timeout=60)


def load(url: str, name: str, version: int = 0) -> Any:
    return http.get(f"{url}/{name.replace('..', '%2E%2E')}", params={"version": version}).json()


def test_large_contents_are_files(kept: Kept) -> None:
    """Beside the state file, readable by its owner alone, under names that no client chose."""
    with kept.serving() as url:
        for name in NAMES:
            save(url, name, BIG)
        save(url, "small", SMALL)
        loaded = [load(url, name) for name in NAMES]
        described = http.get(f"{url}/f/versions/0/metadata").json()

    assert [{"text": BIG}] * 4 == loaded
    assert {"version": 0, "mimeType": "text/plain"}.items() <= described.items()
    assert 4 == len(kept.files())
    assert {0o600} == {file.stat().st_mode & 0o777 for file in kept.files()}
    assert all(len(file.name) == 32 and file.name.isalnum() for file in kept.files())
    assert {kept.file, kept.directory} == set(kept.folder.iterdir())
    assert {kept.folder} == set(kept.folder.parent.iterdir())
    assert kept.file.stat().st_size < LARGE


def test_contents_survive_a_restart(kept: Kept) -> None:
    """Small and large, version by version."""
    texts = [BIG, SMALL, BIG + "2", ""]
    with kept.serving() as url:
        for text in texts:
            save(url, "f", text)
    with kept.serving() as url:
        again = [load(url, "f", version)["text"] for version in range(4)]

    assert texts == again


def test_a_content_is_read_when_it_is_asked_for(kept: Kept) -> None:
    """Not at the start: one whose file is lost is listed, and loading it says which file."""
    with kept.serving() as url:
        save(url, "lost", BIG)
        save(url, "f", BIG)
    kept.files()[0].unlink()
    (left,) = kept.files()
    with kept.serving() as url:
        names = http.get(url).json()
        answers = {name: http.get(f"{url}/{name}") for name in names}

    assert ["f", "lost"] == names
    assert {200, 503} == {answer.status_code for answer in answers.values()}
    (lost,) = (answer for answer in answers.values() if answer.status_code == 503)
    assert f"The artifact file {kept.directory}{os.sep}" in lost.json()["detail"]
    assert left.name not in lost.text


def test_files_go_with_their_artifact(kept: Kept) -> None:
    """When it is deleted, every version's; and all with a reset."""
    with Emulator(agents=AGENTS, state=kept.url) as double:
        url = artifacts_of(double.url)
        for name in ("f", "f", "other"):
            save(url, name, BIG)
        http.delete(f"{url}/f")
        after_delete = len(kept.files())
        again = save(url, "f", BIG).json()["version"]
        double.reset(keep=())

    assert (1, 0) == (after_delete, again)
    assert [] == kept.files()


def test_what_a_kill_left_is_removed_at_the_start(kept: Kept) -> None:
    """Files that no record names; not what somebody else put there."""
    with kept.serving() as url:
        save(url, "f", BIG)
    (named,) = kept.files()
    theirs = kept.directory / "notes.txt"
    for left in ("0" * 32, "1" * 32 + ".part"):
        (kept.directory / left).write_bytes(b"half")
    theirs.write_text("mine")
    with kept.serving() as url:
        loaded = load(url, "f")

    assert {"text": BIG} == loaded
    assert sorted((named, theirs)) == kept.files()


def test_a_version_that_cannot_be_written_is_not_kept(kept: Kept) -> None:
    """The answer says why, and there is no such version; small ones go on."""
    kept.directory.write_text("in the way")
    with kept.serving() as url:
        refused = save(url, "f", BIG)
        names = http.get(url).json()
        saved = save(url, "f", SMALL).json()["version"]

    assert 503 == refused.status_code
    assert f"The artifact file {kept.directory}" in refused.json()["detail"]
    assert ([], 0) == (names, saved)


def test_versions_that_are_saved_at_once_are_all_there(kept: Kept) -> None:
    """Each with its own content, whatever takes longer."""
    with kept.serving() as url, ThreadPoolExecutor(8) as pool:
        texts = [f"{number} {BIG if number % 2 else SMALL}" for number in range(16)]
        saved = list(pool.map(lambda text: save(url, "f", text).json()["version"], texts))
        loaded = [load(url, "f", version)["text"] for version in saved]

    assert list(range(16)) == sorted(saved)
    assert texts == loaded


SERVER = """
import sys, threading
from pathlib import Path
from agentdouble import Emulator

with Emulator(agents=Path(sys.argv[1]), state=sys.argv[2]) as double:
    print(double.url, flush=True)
    threading.Event().wait()
"""


@pytest.mark.slow
def test_a_kill_loses_no_version_that_was_answered(kept: Kept) -> None:
    """Nor leaves half of one, nor a file that no record names: SIGKILL amid saves."""
    answered = [name for life in range(3) for name in _killed_amid_saves(kept, life)]
    with kept.serving() as url:
        names = http.get(url).json()
        loaded = {name: load(url, name)["text"] for name in names}

    assert set(answered) <= set(names)
    assert {name: name + BIG for name in names} == loaded
    assert len(names) == len(kept.files())


def _killed_amid_saves(kept: Kept, life: int) -> list[str]:
    """Save from three threads at once, kill the server; return the names that were answered."""
    command = [sys.executable, "-c", SERVER, str(AGENTS), kept.url]
    answered: list[str] = []
    enough = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = artifacts_of(server.stdout.readline().strip())

        def work(worker: int) -> None:
            for number in range(1000):
                name = f"{life}-{worker}-{number}"
                try:
                    save(url, name, name + BIG).raise_for_status()
                except httpx.TransportError:
                    return
                answered.append(name)
                if len(answered) >= 10:
                    enough.set()

        workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for one in workers:
            one.start()
        try:
            assert enough.wait(200)
        finally:
            signals.send(server.pid, signal.SIGKILL)
        for one in workers:
            one.join()
    return answered
