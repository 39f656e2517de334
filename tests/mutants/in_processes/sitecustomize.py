"""Apply the mutant in MUTANT to a process that a check starts; Python imports this module."""

import os

import pytest

from tests.mutants.library import PROCESSES

PROCESSES[os.environ["MUTANT"]](pytest.MonkeyPatch())
