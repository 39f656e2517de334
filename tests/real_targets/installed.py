"""Which implementations are installed, in environments of their own.

They pin other protocol libraries than ours and so cannot share one with the tests.
"""

from __future__ import annotations

import os

import pytest

from tests.real_targets.platforms import IMPLEMENTATIONS, Implementation


def case(*packages: str) -> pytest.MarkDecorator:
    """Run a test with each of these implementations, or with all, where they are installed."""
    chosen = [one for one in IMPLEMENTATIONS if one.package in packages or not packages]
    return pytest.mark.parametrize("implementation", [_installed(one) for one in chosen])


def _installed(one: Implementation) -> object:
    missing = f"{one.variable} names no Python with it: pip install '{one.install}'"
    absent = pytest.mark.skipif(one.variable not in os.environ, reason=missing)
    return pytest.param(one, id=one.package, marks=absent)
