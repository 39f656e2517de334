"""Which implementations are installed, in environments of their own.

They pin other protocol libraries than ours and so cannot share one with the tests.
"""

from __future__ import annotations

import os

import pytest

from tests.real_targets.platforms import IMPLEMENTATIONS, Implementation


def case(*packages: str) -> pytest.MarkDecorator:
    """Run a test with each of these implementations, or with all, if they are installed."""
    chosen = [impl for impl in IMPLEMENTATIONS if impl.package in packages or not packages]
    return pytest.mark.parametrize("implementation", [_installed(impl) for impl in chosen])


def _installed(impl: Implementation) -> object:
    missing = f"{impl.variable} names no Python with it: pip install '{impl.install}'"
    absent = pytest.mark.skipif(impl.variable not in os.environ, reason=missing)
    return pytest.param(impl, id=impl.package, marks=absent)
