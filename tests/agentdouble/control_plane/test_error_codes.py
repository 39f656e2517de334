from __future__ import annotations

from agentdouble.control_plane import wire


def test_the_table_is_the_published_one() -> None:
    """Number and status of every code are those of the platform's own page."""
    assert {
        "MissingParameter": (100002, 400),
        "MissingAuthenticationToken": (100003, 401),
        "MissingRequestInfo": (100004, 400),
        "MissingSignature": (100005, 401),
        "InvalidTimestamp": (100006, 400),
        "ServiceNotFound": (100007, 404),
        "InvalidActionOrVersion": (100008, 404),
        "InvalidAccessKey": (100009, 401),
        "SignatureDoesNotMatch": (100010, 401),
        "LackPolicy": (100012, 403),
        "AccessDenied": (100013, 403),
        "InvalidSecurityToken": (None, 401),
    } == {name: (code.number, code.status) for name, code in wire.PUBLIC.items()}
