"""Whether a Ray cluster demands a token: code of a session could join one that does not.

Sessions share their machine's network, so they reach Ray's ports. Without a token, whoever reaches
them runs tasks as Ray's user, outside every sandbox. Ray reads ``RAY_AUTH_MODE`` once in a process,
so another process tries to join without a token: ``python -m agentdouble.sandbox.nodes.ray_token``.
"""

from __future__ import annotations

import enum
import os
import subprocess
import sys

_ANSWER_S = 5.0


class Access(enum.IntEnum):
    """What came of the attempt, as an exit code."""

    OPEN = 0
    NEEDS_TOKEN = 3
    UNKNOWN = 1


def try_without(address: str, patience_s: float = 20.0) -> Access:
    """Try to join the cluster at HOST:PORT without a token; takes half a second."""
    command = [sys.executable, "-m", __name__, address]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    try:
        done = subprocess.run(  # noqa: S603 (our own module)
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=patience_s,
            check=False,
        )
    except subprocess.TimeoutExpired:  # nothing answers at the address
        return Access.UNKNOWN
    return Access(done.returncode) if done.returncode in [*Access] else Access.UNKNOWN


def refusal(address: str) -> str:
    """Return why no session is placed on a cluster without a token."""
    return (
        f"the Ray cluster at {address} demands no token, so code of a session could join it and run "
        "tasks outside its sandbox. Start each process of Ray with RAY_AUTH_MODE=token "
        "(https://docs.ray.io/en/latest/ray-security/token-auth.html), set network = 'none', or "
        "allow it with ray_without_token = true (serve --ray-without-token)"
    )


def main() -> int:
    """Ask the cluster for a value; return the Access."""
    import ray  # optional: agentdouble[ray]

    try:
        client = ray._raylet.GcsClient(address=sys.argv[1])
        client.internal_kv_get(b"", namespace=None, timeout=_ANSWER_S)
    except ray.exceptions.AuthenticationError:
        return Access.NEEDS_TOKEN
    return Access.OPEN


if __name__ == "__main__":
    sys.exit(main())
