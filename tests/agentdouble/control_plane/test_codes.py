from __future__ import annotations

from agentdouble import errors
from agentdouble.control_plane import codes


def test_an_error_of_the_public_table_has_its_status() -> None:
    """The HTTP status is that of the platform's own table."""
    error = codes.public_error("LackPolicy", "No.")

    assert ("LackPolicy", 403, "No.") == (error.code, error.status, str(error))


def test_every_error_of_the_sandbox_has_a_code_of_its_own() -> None:
    """No sandbox error falls back to InternalError."""
    raised = [
        errors.UnknownLanguageError("cobol", ["python3"]),
        errors.TooManyInstancesError(1),
        errors.InstanceBusyError("u"),
        errors.InstancePausedError("u"),
        errors.InstanceEndedError("u", "expired"),
        errors.KernelStartError("Python", "no memory"),
        errors.NotBuiltError("It"),
    ]
    assert {*errors.SandboxError.__subclasses__(), errors.NotBuiltError} == set(map(type, raised))

    answered = {(e.code, e.status) for e in map(codes.sandbox_error, raised)}

    assert {
        ("InvalidParameter", 400),
        ("QuotaExceeded", 429),
        ("InvalidResource.Busy", 409),
        ("InvalidResource.Paused", 409),
        ("InvalidResource.NotFound", 404),
        ("ErrCreateSessionFail", 500),
        ("NotImplemented", 501),
    } == answered


def test_what_is_built_is_not_said_to_be_unbuilt() -> None:
    """InvokeTool works, so it is not in the list of what is refused."""
    assert "InvokeTool" not in codes.NOT_BUILT
