from __future__ import annotations

import datetime as dt

import httpx
import pytest

from doublecheck import Platform
from doublecheck.core.notebook_repr import Secret
from doublecheck.errors import AnswerError, RefusedError, UnreachableError
from doublecheck.results import BashResult
from doublecheck.wire import data_plane


def test_a_command_comes_to_a_result(platform: Platform) -> None:
    """It runs in the session's own sandbox, and a failure is a result."""
    code = platform.run_code("open('f', 'w').write('x')")

    result = platform.exec_bash("cat f; (exit 3)")

    assert BashResult("completed", 3, "x", "", code.session_id, "cat f; (exit 3)") == result


@pytest.mark.slow
def test_a_command_that_runs_on_has_no_exit_code(platform: Platform) -> None:
    """Its timeout ends the waiting alone."""
    platform.exec_bash("true")  # a bash that runs needs no second to say something

    result = platform.exec_bash("echo begun; sleep 600", timeout_s=1)

    assert ("running", None, "begun\n") == (result.status, result.exit_code, result.stdout)


def test_files_go_in_and_out(platform: Platform) -> None:
    """Whatever their names and bytes; each session has its own."""
    content = bytes(range(256))

    path = platform.upload("/home/gem/a dir/ü&?#.bin", content, session_id="one")

    assert "/home/gem/a dir/ü&?#.bin" == path
    assert content == platform.download(path, session_id="one")
    with pytest.raises(RefusedError) as refused:
        platform.download(path, session_id="two")
    assert 404 == refused.value.status


def test_what_fails_says_so(platform: Platform) -> None:
    """A file that cannot be put somewhere is refused with the reason."""
    with pytest.raises(RefusedError, match="Cannot upload '/proc/x'"):
        platform.upload("/proc/x", b"")
    with pytest.raises(RefusedError, match="InvalidParameter"):
        platform.exec_bash(" ")


def test_the_token_is_in_no_error(platform: Platform) -> None:
    """What opens a session's data plane is kept out of messages."""
    endpoint = data_plane.endpoint(
        platform.target, user_id="u", session_id="s", ttl_s=None, when=_now()
    )
    address = platform._call(endpoint)
    token = address.query.reveal().partition("Authorization=")[2]
    assert len(token) > 20
    assert token not in repr(address)

    with pytest.raises(RefusedError) as refused:
        platform._call(data_plane.download(address, "/none"))
    dead = data_plane.Endpoint("http://127.0.0.1:1", Secret(address.query.reveal()))
    with pytest.raises(UnreachableError) as unreachable:
        platform._call(data_plane.download(dead, "/none"))

    assert "Authorization=***" in str(refused.value)
    assert token not in f"{refused.value} {unreachable.value}"


def test_an_answer_without_an_endpoint_is_none(platform: Platform) -> None:
    """A platform that gives none has no data plane to speak of."""
    call = data_plane.endpoint(
        platform.target, user_id="u", session_id="s", ttl_s=None, when=_now()
    )
    for document in ({}, {"Result": {}}, {"Result": {"Endpoint": ""}}, []):
        with pytest.raises(AnswerError, match="no Endpoint"):
            call.read(httpx.Response(200, json=document))


def _now() -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc)
