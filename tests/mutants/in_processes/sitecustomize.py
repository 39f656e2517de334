"""Break what MUTANT names in a process that a check starts; Python imports this by itself."""

import os

import pytest

from tests.mutants.library import PROCESSES

PROCESSES[os.environ["MUTANT"]](pytest.MonkeyPatch())
