from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests import machine
from tests.agentdouble.runtimes.asking import ask, asking_table, pids_outside

SECRET = "of-the-other-runtime"
GIVEN = {
    *("HOME", "TMPDIR", "PORT", "USER", "LOGNAME", "PATH", "VIRTUAL_ENV", "PYTHONUNBUFFERED"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH"),
}
EVERYTHING = ("files", "landlock", "signals", "pid_namespace")


@dataclass(frozen=True)
class Neighbours:
    """A double with two runtimes, ``victim`` and ``spy``, in separate directories."""

    double: Emulator
    victim: Path

    def spied(self) -> dict[str, bool]:
        """Return what one runtime can do to the other."""
        (pid,) = pids_outside(self.double, "victim", "[os.getpid()]")
        note = self._note(f"note-{pid}")
        attempts = {
            "its environment": f"{SECRET!r} in pathlib.Path('/proc/{pid}/environ').read_text()",
            "its files": f"pathlib.Path({str(note)!r}).read_text() == {SECRET!r}",
            "its program": f"os.path.exists({str(self.victim / 'asking.py')!r})",
            "its process": f"os.kill({pid}, 0) is None",
            "its command line": f"os.path.exists('/proc/{pid}/cmdline')",
        }
        return {name: ask(self.double, "spy", code) is True for name, code in attempts.items()}

    def _note(self, name: str) -> Path:
        written = f"pathlib.Path.home().joinpath({name!r}).write_text({SECRET!r})"
        assert len(SECRET) == ask(self.double, "victim", written)
        # pathlib's raises where another double's directory goes meanwhile
        (home,) = glob.glob(f"{tempfile.gettempdir()}/agentdouble-*/*/home/{name}")  # noqa: PTH207
        return Path(home)


def neighbours(directory: Path, mode: int, **settings: str) -> Iterator[Neighbours]:
    tables = []
    for name in ("victim", "spy"):
        own = directory / name
        own.mkdir()
        tables.append(asking_table(name, own, environment={"SECRET": SECRET}))
        own.chmod(mode)
    with Emulator(runtimes=tables, **settings) as double:
        yield Neighbours(double, directory / "victim")


@pytest.fixture(scope="module", params=[0o755, 0o700], ids=["open to all", "closed to others"])
def apart(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Neighbours]:
    """Confined runtimes whose directories are readable or not."""
    machine.require(*EVERYTHING)
    yield from neighbours(tmp_path_factory.mktemp("apart"), request.param)


def test_runtime_cannot_see_or_touch_another(apart: Neighbours) -> None:
    """Its environment, files, program and process (HST-03)."""
    assert {False} == {*apart.spied().values()}


def test_unconfined_runtime_can_see_another(tmp_path: Path) -> None:
    """This shows that the attempts are real and confinement stops them."""
    for together in neighbours(tmp_path, 0o755, isolation="none"):
        assert {True} == {*together.spied().values()}


def test_runtime_does_not_see_the_double_s_secrets(apart: Neighbours) -> None:
    """Neither in its environment, except its connection to the double, nor in the double's."""
    names = ask(apart.double, "spy", "sorted(os.environ)")
    own = {*apart.double.environment(), *apart.double.environment("model")}
    expected = {*GIVEN, *own, "SECRET"}
    above = (os.getpid(), "os.getppid() or 1")
    read = [ask(apart.double, "spy", f"open(f'/proc/{{{pid}}}/environ').read()") for pid in above]

    assert set() == {*names} - expected
    assert set() == {*read} - {"PermissionError", "FileNotFoundError"}


def test_runtime_has_a_private_home_and_temporary_directory(apart: Neighbours) -> None:
    """Its working directory is the program's, read-only."""
    expression = "os.path.expanduser('~'), os.environ['TMPDIR'], os.getcwd()"

    assert ["/home/gem", "/tmp", str(apart.victim)] == ask(apart.double, "victim", expression)
    assert "OSError" == ask(apart.double, "victim", "open('new', 'w').close()")
    assert "hi" == ask(
        apart.double,
        "victim",
        "[pathlib.Path('/tmp/x').write_text('hi'), pathlib.Path('/tmp/x').read_text()][1]",
    )
