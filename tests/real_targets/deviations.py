"""The known deviations of the real implementations from the specification."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def gaps(package: str) -> Mapping[str, str]:
    """Return the observed deviations by clause."""
    text = Path(__file__).with_name("deviations.toml").read_text("utf-8")
    reasons: Mapping[str, str] = tomllib.loads(text)[package]
    return reasons
