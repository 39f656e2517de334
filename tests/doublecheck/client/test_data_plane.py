from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from doublecheck import AsyncPlatform, Platform
from doublecheck.client._sync.faults import PlatformFaults
from doublecheck.client.doubles import serving_double
from doublecheck.core.notebook_repr import Secret
from doublecheck.errors import AnswerError, RefusedError, UnreachableError
from doublecheck.results import BashResult, Browser
from doublecheck.wire import data_plane


@pytest.fixture(scope="module")
def creating() -> Iterator[Platform]:
    """A platform whose sessions start slowly."""
    unknowns = {"U-TOOL-SESSION-READY": "creating"}
    with serving_double(unknowns=unknowns) as target, Platform(target) as platform:
        yield platform


def test_a_command_returns_a_result(platform: Platform) -> None:
    """A failure is a result, too."""
    code = platform.run_code("open('f', 'w').write('x')")

    result = platform.sandbox().exec_bash("cat f; (exit 3)")

    assert BashResult("completed", 3, "x", "", code.session_id, "cat f; (exit 3)") == result


@pytest.mark.slow
def test_a_running_command_has_no_exit_code(platform: Platform) -> None:
    """The timeout ends only the wait."""
    platform.sandbox().exec_bash("true")  # a bash that runs needs no second to say something

    result = platform.sandbox().exec_bash("echo begun; sleep 600", timeout_s=1)

    assert ("running", None, "begun\n") == (result.status, result.exit_code, result.stdout)


def test_files_are_uploaded_and_downloaded(platform: Platform) -> None:
    """Each session has separate files, with arbitrary names and bytes."""
    content = bytes(range(256))

    path = platform.sandbox(session_id="one").upload("/home/gem/a dir/ü&?#.bin", content)

    assert "/home/gem/a dir/ü&?#.bin" == path
    assert content == platform.sandbox(session_id="one").download(path)
    with pytest.raises(RefusedError) as refused:
        platform.sandbox(session_id="two").download(path)
    assert 404 == refused.value.status


def test_a_failed_upload_has_a_reason(platform: Platform) -> None:
    with pytest.raises(RefusedError, match="Cannot upload '/proc/x'"):
        platform.sandbox().upload("/proc/x", b"")
    with pytest.raises(RefusedError, match="InvalidParameter"):
        platform.sandbox().exec_bash(" ")


def test_errors_do_not_contain_the_token(platform: Platform) -> None:
    sandbox = platform.sandbox()
    address = sandbox._endpoint()
    token = address.query.reveal().partition("Authorization=")[2]
    assert len(token) > 20
    assert token not in repr(address)

    with pytest.raises(RefusedError) as refused:
        sandbox.download("/none")
    dead = data_plane.Endpoint("http://127.0.0.1:1", Secret(address.query.reveal()))
    with pytest.raises(UnreachableError) as unreachable:
        Browser(platform._connection, lambda: dead).info()

    assert "Authorization=***" in str(refused.value)
    assert token not in f"{refused.value} {unreachable.value}"


def test_a_session_that_starts_is_awaited(creating: Platform) -> None:
    """Files reach a session that did not exist, and it is known while it starts."""
    sandbox = creating.sandbox(session_id="files")

    path = sandbox.upload("note", b"first")

    assert b"first" == sandbox.download(path)
    starts = creating.sandbox(session_id="starts")
    starts._start("CreateSession", starts._creation())
    assert starts.exists()
    assert starts.destroy()
    assert not starts.exists()


@pytest.mark.anyio
async def test_a_session_that_starts_is_awaited_without_blocking(creating: Platform) -> None:
    async with AsyncPlatform(creating.target) as platform:
        path = await platform.sandbox(session_id="awaited").upload("note", b"first")

        assert b"first" == await platform.sandbox(session_id="awaited").download(path)


def test_a_session_that_does_not_start_is_removed(
    platform: Platform, platform_faults: PlatformFaults
) -> None:
    """Until then, its code and its files are refused."""
    platform_faults.fail_start()
    sandbox = platform.sandbox(session_id="fails")

    with pytest.raises(AnswerError, match="no Endpoint; its Status is Failed"):
        sandbox.upload("note", b"")
    with pytest.raises(RefusedError, match="did not start"):
        sandbox.run("1")
    assert not sandbox.exists()
    assert sandbox.destroy()

    assert "1" == sandbox.run("1").text


def test_a_creation_that_fails_leaves_its_session(
    platform: Platform, platform_faults: PlatformFaults
) -> None:
    """Its next use has it."""
    sandbox = platform.sandbox(session_id="left")
    platform_faults.fail("CreateSession", code="ErrCreateSessionFail", after_execution=True)

    with pytest.raises(RefusedError, match="ErrCreateSessionFail"):
        sandbox.upload("note", b"")

    assert sandbox.exists()


def test_an_answer_without_an_endpoint_is_an_error() -> None:
    ready = {"SessionId": "s-1", "Status": "Ready", "Endpoint": ""}
    documents: list[Any] = [{}, {"Result": {}}, {"Result": {"Endpoint": ""}}, [], {"Result": ready}]
    for document in documents:
        with pytest.raises(AnswerError, match="no Endpoint"):
            data_plane.read_endpoint(httpx.Response(200, json=document))
