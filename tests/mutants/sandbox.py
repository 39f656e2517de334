"""Mutants of the sandbox."""

from __future__ import annotations

from typing import Any

from tests.mutants import Mutant, wire


def _without_stderr(result: Any) -> Any:
    outputs = [one for one in result["data"]["outputs"] if one["name"] != "stderr"]
    return {**result, "data": {**result["data"], "outputs": outputs}}


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "drop_standard_error",
        "SBX-05",
        "Items of outputs: output_type (string, e.g. stream), name (string, e.g. stdout) (2.7)",
        wire.executions(_without_stderr),
    ),
)
