"""``python -m tests.fuzz [OPTION...]``: fuzz a double; exit with schemathesis's status."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from agentdouble import Emulator
from agentdouble.core import environment
from agentdouble.core.environment import DoubleConnection
from tests.agentdouble.calling import data_plane
from tests.agentdouble.openapi.driver import document_of

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
DOCUMENT = "/openapi.json"
_HERE = Path(__file__).parent


def main(options: list[str]) -> int:
    """Fuzz the surfaces of the platform."""
    with (
        tempfile.TemporaryDirectory() as empty,
        # room for the kernels that a session may have: else one that is begun ends with 500
        Emulator(runtime_sources=(Path(empty),), max_instances=8, process_limit=2048) as double,
    ):
        return _fuzz(double, options)


def _fuzz(double: Emulator, options: list[str]) -> int:
    document_of(double)  # it is made now, and schemathesis waits ten seconds at most
    plane = data_plane(double, "fuzzed")
    keys = double.credentials
    connection = DoubleConnection(
        double.url, double.tool_id, keys.access_key, keys.secret_key, "cn-beijing"
    )
    command = [
        str(Path(sysconfig.get_path("scripts")) / "schemathesis"),
        *("--config-file", str(_HERE / "schemathesis.toml")),
        *("run", double.url + DOCUMENT, "--checks", ",".join(CHECKS)),
        *("--phases", "coverage,fuzzing", "--max-examples", "20", "--continue-on-failure"),
        *("--header", f"X-API-Key: {double.token}"),
        *("--request-timeout", "30", "--suppress-health-check", "all", "--warnings", "off"),
        *options,
    ]
    own = {
        "SCHEMATHESIS_HOOKS": f"{__package__}.hooks",
        "FUZZED_SESSION": urlencode(plane.query),
        "PYTHONPATH": str(_HERE.parents[1]),
    }
    variables = {**os.environ, **environment.variables(connection), **own}
    with tempfile.TemporaryDirectory() as folder:  # it leaves examples behind
        return subprocess.run(command, cwd=folder, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
