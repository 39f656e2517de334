"""Break what MUTANT names (``module:name`` of its IN_PROCESSES) in a process that a check starts.

Python imports this module by itself, because PYTHONPATH names its folder.
"""

import os
from importlib import import_module

import pytest

_module, _, _name = os.environ["MUTANT"].partition(":")
import_module(_module).IN_PROCESSES[_name](pytest.MonkeyPatch())
