from __future__ import annotations

from agentdouble import errors
from agentdouble.control_plane import action_errors


def test_an_error_of_the_public_table_has_its_status() -> None:
    """The HTTP status is that of the platform's own table."""
    error = action_errors.public_error("LackPolicy", "No.")

    assert ("LackPolicy", 403, "No.") == (error.code, error.status, str(error))


def test_every_error_of_the_sandbox_has_a_code_of_its_own() -> None:
    """No sandbox error falls back to InternalError."""
    raised = [
        errors.UnknownLanguageError("cobol", ["python3"]),
        errors.DirectoryError("/nowhere", "there is none"),
        errors.UnknownToolError("t-1", ["t-2"]),
        errors.ToolConflictError("No.", "t-1"),
        errors.FixedToolError("No.", "t-1"),
        errors.UnknownSessionError("s-1"),
        errors.TooManyInstancesError(1),
        errors.ResourceExhaustedError("memory", "1 MiB left", "add some"),
        errors.LimitError(1, "are open."),
        errors.InstanceBusyError("u"),
        errors.InstancePausedError("u"),
        errors.InstanceEndedError("u", "expired"),
        errors.SnapshotRefusedError("code runs"),
        errors.SnapshotGoneError("the double was restarted"),
        errors.UnknownSessionSnapshotError("snap-1"),
        errors.KernelStartError("Python", "no memory"),
        errors.NotBuiltError("It"),
        errors.WorkbenchError("killed"),
        errors.BrowserError("killed"),
        errors.BrowserMissingError("Chromium", "apt-get install chromium"),
        errors.PageError("it is busy"),
    ]
    raisable = {
        kind
        for kind in map(errors.__dict__.get, errors.__all__)
        if isinstance(kind, type) and issubclass(kind, errors.SandboxError)
    } - {errors.SandboxError}
    assert {*raisable, errors.NotBuiltError} == set(map(type, raised))

    answered = {(e.code, e.status) for e in raised}

    assert {
        ("InvalidParameter", 400),
        ("QuotaExceeded", 429),
        ("InvalidResource.Busy", 409),
        ("InvalidResource.Paused", 409),
        ("InvalidResource.NotFound", 404),
        ("InvalidResource.AlreadyExists", 409),
        ("InvalidResource.Fixed", 409),
        ("InvalidSnapshot.NotPossible", 409),
        ("InvalidSnapshot.NotFound", 404),
        ("InvalidSnapshot.NotReady", 409),
        ("ErrCreateSessionFail", 500),
        ("InternalError.Workbench", 502),
        ("InternalError.Browser", 502),
        ("InternalError.Browser", 503),
        ("NotImplemented", 501),
    } == answered


def test_every_error_of_the_mcp_services_has_a_code_of_its_own() -> None:
    """Except those that a service's caller gets, which no action raises."""
    raised = [
        errors.UnknownServiceError("one", []),
        errors.ServiceNameError("a/b"),
        errors.ServiceNameTakenError("one"),
        errors.ServiceKeyError("No.", service="one"),
        errors.BackendError("No.", service="one"),
        errors.DefinitionError("it is no object"),
    ]
    unraised = {errors.ServiceUnansweredError}
    assert {*errors.McpServiceError.__subclasses__(), errors.DefinitionError} == (
        set(map(type, raised)) | unraised
    )

    answered = [(e.code, e.status) for e in raised]

    assert [
        ("InvalidResource.NotFound", 404),
        ("InvalidParameter", 400),
        ("InvalidResource.AlreadyExists", 409),
        *[("InvalidParameter", 400)] * 3,
    ] == answered


def test_every_error_of_the_runtimes_has_a_code_of_its_own() -> None:
    """Except those that a runtime's caller or the double's own routes get."""
    raised = [
        errors.UnknownRuntimeError("r-1"),
        errors.UnknownVersionError("one", 3, [1]),
        errors.UnknownInstanceError("one", "one-1"),
        errors.RuntimeNameError("one", "there is one of that name"),
        errors.RuntimeStartError("one", "it ended"),
        errors.RuntimeEndedError("one", "it was deleted"),
        errors.AuthorizerError("No."),
    ]
    unraised = {
        *(errors.AccessError, errors.IssuerError, errors.RuntimeBusyError, errors.LogQueryError),
        errors.InstanceLostError,
    }
    assert set(errors.HostingError.__subclasses__()) - unraised == set(map(type, raised))

    answered = [(e.code, e.status) for e in raised]

    assert [
        ("InvalidAgentKitRuntime.NotFound", 404),
        *[("InvalidResource.NotFound", 404)] * 2,
        ("InvalidResource.AlreadyExists", 409),
        ("InternalError.Runtime", 502),
        ("InvalidAgentKitRuntime.NotFound", 404),
        ("InvalidParameter", 400),
    ] == answered


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
    } == {name: (code.number, code.status) for name, code in action_errors.PUBLIC.items()}
