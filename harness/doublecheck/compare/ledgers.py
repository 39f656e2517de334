"""The ledgers and journals of the doubles that a test run uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from agentdouble.core import ledger, profiles
from agentdouble.errors import ProfileError
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import DoubleCheckError
from doublecheck.target.target import Target
from doublecheck.wire import admin

Choice = tuple[str, str]
_PROFILE_VARIABLE = "AGENTDOUBLE_PROFILE"


class Journal:
    """A double's journal that yields each entry once."""

    def __init__(self, target: Target) -> None:
        self._platform = Platform(target, timeout_s=10)
        self._last = 0
        self.in_force: Mapping[str, str] = {}

    def relied_on(self) -> frozenset[str]:
        """Return the unsettled unknowns that the entries since the last call relied on.

        The result is empty if the double does not answer, because a test may have stopped it.
        """
        try:
            usage = self._platform._call(admin.unknowns(self._platform.target, self._last))
        except DoubleCheckError:
            return frozenset()
        self._last, self.in_force = usage.last, usage.in_force
        return usage.relied_on - usage.settled

    def close(self) -> None:
        self._platform.close()

    @staticmethod
    def refusal(relied_on: Sequence[str]) -> str:
        """Return why a strict run fails a test that relied on unknowns."""
        return (
            f"--platform-strict: this test relies on {', '.join(relied_on)}, which the specification "
            "leaves open and no profile settles. 'doublecheck calibrate' writes a profile of a "
            "deployment. If you know the answer (see 'agentdouble unknowns'), add it to the profile's "
            f'[unknowns]: {relied_on[0]} = "{ledger.find(relied_on[0]).default.name}".'
        )


def alternatives(relied_on: Sequence[str], in_force: Mapping[str, str]) -> Iterator[Choice]:
    """Yield each other answer that a double supports, with its unknown."""
    for id_ in relied_on:
        unknown = ledger.find(id_)
        for answer in (unknown.default, *unknown.alternatives):
            if answer.built and answer.name != in_force[id_]:
                yield id_, answer.name


def choose(target: Target, choice: dict[str, str]) -> None:
    """Change the answers of a double."""
    with Platform(target) as platform:
        platform._call(admin.choose(target, choice))


def use_profile(config: pytest.Config, file: Path) -> None:
    """Make every double that starts from now on use the profile. Raise UsageError."""
    try:
        profiles.read(file)
    except ProfileError as error:
        raise pytest.UsageError(f"--platform-profile: {error}") from None
    patch = pytest.MonkeyPatch()
    patch.setenv(_PROFILE_VARIABLE, str(file))  # also for a double in another interpreter
    config.add_cleanup(patch.undo)
