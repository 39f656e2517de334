"""Write the reference applications to a folder, for an SDK or for google-adk's API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from doublecheck import contracts
from doublecheck.errors import FolderError

Sdk = Literal["agentdouble", "agentkit", "adk"]

_HERE = Path(contracts.__file__).parent
_SHARED = _HERE / "reference"
_OF_ONE_SDK = "agentdouble_apps.py"
# next to the agent that a double in this process serves from there
_SHARED_ACTIONS = Path("agents", "doublecheck_reference", "actions.py")


def files(sdk: Sdk) -> Mapping[Path, bytes]:
    """Return the files for an SDK: contents by path in the folder."""
    sdk_folder = _HERE / "applications" / sdk
    paths = {path.relative_to(sdk_folder): path for path in _below(sdk_folder)}
    paths[_SHARED_ACTIONS] = _HERE / "applications" / "agentdouble" / _SHARED_ACTIONS
    if sdk == "adk":  # the agents alone, which the platform's SDK runs in google-adk, too
        agentkit = _HERE / "applications" / "agentkit"
        paths |= {path.relative_to(agentkit): path for path in _below(agentkit / "agents")}
    for path in () if sdk == "adk" else _below(_SHARED):
        if sdk == "agentdouble" or path.name != _OF_ONE_SDK:
            paths[path.relative_to(_HERE)] = path
    return {name: path.read_bytes() for name, path in sorted(paths.items())}


def write(sdk: Sdk, folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write the reference applications and return their files.

    Raises FolderError, and writes nothing, if a file with other content would be replaced and
    ``force`` is not set.
    """
    new_files = {folder / name: content for name, content in files(sdk).items()}
    try:
        changed = [
            path
            for path, content in new_files.items()
            if (path.is_symlink() or (path.exists() and path.read_bytes() != content))
        ]
        if changed and not force:
            raise FolderError(_in_the_way(folder, changed))
        for path, content in new_files.items():
            _write(path, content)
    except OSError as error:
        reason = error.strerror or error
        raise FolderError(
            f"{error.filename or folder} cannot be written: {reason}. Choose another folder "
            "with -o."
        ) from None
    return tuple(new_files)


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield path


def _in_the_way(folder: Path, changed: list[Path]) -> str:
    named = ", ".join(str(path.relative_to(folder)) for path in changed)
    return (
        f"{folder} already has different files: {named}. Nothing was written. Choose another "
        "folder with -o, or use --force to replace them."
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()  # replace the link, not its target
    path.write_bytes(content)
