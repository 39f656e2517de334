"""Probes: small exchanges that find out which alternative of the ledger a platform implements.

Each module has the probes of a surface, and ``probing`` has what they share. ``doublecheck
calibrate`` runs them on a deployment; the tests of the alternatives run the same probes on a double
with each answer in turn.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from agentdouble.core import ledger
from doublecheck.calibration.probes.probing import NotSettledError, Probe, registered

__all__ = ["NotSettledError", "Probe", "probes"]

_TOPICS = ("api_server", "control_plane", "invocation", "sessions")


def probes() -> Mapping[str, Probe]:
    """Return every probe by the id of its unknown, in the order of the ledger."""
    for topic in _TOPICS:
        importlib.import_module(f"doublecheck.calibration.probes.{topic}")
    return {id_: registered()[id_] for id_ in ledger.unknowns() if id_ in registered()}
