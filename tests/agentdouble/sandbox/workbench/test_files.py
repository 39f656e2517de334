from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import DataPlane, data_plane, http, text

pytestmark = pytest.mark.once


@pytest.fixture(scope="module", params=["auto", "none"])
def double(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """A double with isolated sessions, and one with mapped paths."""
    with Emulator(isolation=request.param, pool_size=0) as double:
        yield double


@pytest.fixture
def plane(double: Emulator) -> DataPlane:
    """The data plane of a session without files."""
    double.reset()
    return data_plane(double)


OF_A_FILE = ("read", "write", "replace", "search")


def write(plane: DataPlane, file: str, content: str, **fields: Any) -> int:
    data = plane.data("/v1/file/write", file=file, content=content, **fields)
    assert file == data["file"]
    written: int = data["bytes_written"]
    return written


def read(plane: DataPlane, file: str, **fields: Any) -> str:
    data = plane.data("/v1/file/read", file=file, **fields)
    assert file == data["file"]
    content: str = data["content"]
    return content


def failure(plane: DataPlane, operation: str, /, **body: Any) -> tuple[str, str | None, str]:
    answer = plane.post(f"/v1/file/{operation}", **body).json()
    assert not answer["success"], answer
    data = answer["data"]
    fields = {"path", "operation", "message", "error_type", "retryable"}
    assert fields | {"errno", "errno_name", "exception_type"} == set(data)
    return data["error_type"], data["errno_name"], answer["message"]


@pytest.mark.slow
def test_written_files_are_visible_to_reads_and_code(double: Emulator, plane: DataPlane) -> None:
    """SBX-10: file routes, code and commands see the same file."""
    assert 7 == write(plane, "/home/gem/a b/ü.txt", "Grüße")

    assert "Grüße" == read(plane, "/home/gem/a b/ü.txt")
    assert "Grüße\n" == text(double, "print(open('a b/ü.txt', encoding='utf-8').read())")
    assert "Grüße" == plane.bash("cat 'a b/ü.txt'")["stdout"]


def test_writing_can_append_and_add_newlines(plane: DataPlane) -> None:
    """Newlines are added on request, but never to bytes."""
    write(plane, "/tmp/f", "a", trailing_newline=True)
    write(plane, "/tmp/f", "b", append=True, leading_newline=True)
    write(plane, "/tmp/f", "Yw==", append=True, encoding="base64", leading_newline=True)

    assert "a\n\nbc" == read(plane, "/tmp/f")
    assert 0 == write(plane, "/tmp/f", "")
    assert "" == read(plane, "/tmp/f")


def test_bytes_are_written_as_base64(plane: DataPlane) -> None:
    """Reading invalid UTF-8 as text replaces it."""
    data = bytes(range(256))
    write(plane, "/tmp/b", base64.b64encode(data).decode(), encoding="base64")

    assert data == plane.get("/v1/file/download", path="/tmp/b").content
    assert read(plane, "/tmp/b").startswith("\0\1\2")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({}, "0\n1\n2\n3"),
        ({"start_line": 1, "end_line": 3}, "1\n2\n"),
        ({"start_line": 9}, ""),
    ],
    ids=str,
)
def test_lines_are_read_by_range(plane: DataPlane, lines: dict[str, int], expected: str) -> None:
    """Lines count from 0, and the end is exclusive."""
    write(plane, "/tmp/f", "0\n1\n2\n3")

    assert expected == read(plane, "/tmp/f", **lines)


def test_text_is_replaced_everywhere(plane: DataPlane) -> None:
    """The answer has the count; without a match the file is unchanged."""
    write(plane, "/tmp/f", "a.b.a")

    replaced = [
        plane.data("/v1/file/replace", file="/tmp/f", old_str=old, new_str="c")["replaced_count"]
        for old in ("a", "x")
    ]

    assert ([2, 0], "c.b.c") == (replaced, read(plane, "/tmp/f"))
    kind, _, _ = failure(plane, "replace", file="/tmp/f", old_str="", new_str="x")
    assert "invalid_argument" == kind


def test_lines_are_searched_by_regular_expression(plane: DataPlane) -> None:
    """Line numbers start at 1."""
    write(plane, "/tmp/f", "one\ntwo\nthree\n")

    matches = plane.data("/v1/file/search", file="/tmp/f", regex="^t.*[eo]$")

    assert {"file": "/tmp/f", "matches": ["two", "three"], "line_numbers": [2, 3]} == matches


@pytest.mark.slow
@pytest.mark.parametrize("double", ["auto"], indirect=True)
def test_an_endless_regular_expression_is_stopped(plane: DataPlane) -> None:
    """The session answers other requests meanwhile."""
    from tests.agentdouble.calling import background

    write(plane, "/tmp/f", "a" * 40 + "!")
    searching = background(lambda: failure(plane, "search", file="/tmp/f", regex="(a+)+$"))

    assert "on\n" == plane.bash("echo on")["stdout"]
    assert "timeout" == searching.result(25)[0]


def test_files_are_found_by_pattern(plane: DataPlane) -> None:
    """Only below the directory."""
    for name in ("a.py", "b.txt", "deep/er/c.py"):
        write(plane, f"/home/gem/x/{name}", "")
    home = "/home/gem/x"

    def matches_of(glob: str) -> list[str]:
        files: list[str] = plane.data("/v1/file/find", path=home, glob=glob)["files"]
        return files

    assert [f"{home}/a.py"] == matches_of("*.py")
    assert [f"{home}/a.py", f"{home}/deep/er/c.py"] == matches_of("**/*.py")
    assert [] == matches_of("../*")
    assert "invalid_argument" == failure(plane, "find", path=home, glob="/etc/*")[0]


def test_a_directory_is_listed(plane: DataPlane) -> None:
    """The answer has names, kinds and sizes as requested."""
    write(plane, "/home/gem/b.txt", "12345")
    write(plane, "/home/gem/.hidden", "1")
    write(plane, "/home/gem/deep/a.py", "12")

    def listed(**fields: Any) -> list[str]:
        files = plane.data("/v1/file/list", path="/home/gem", **fields)["files"]
        return [file["path"].removeprefix("/home/gem/") for file in files]

    answer = plane.data("/v1/file/list", path="/home/gem", include_permissions=True)
    entry = next(file for file in answer["files"] if file["name"] == "b.txt")
    assert entry.pop("modified_time")
    assert {
        "name": "b.txt",
        "path": "/home/gem/b.txt",
        "is_directory": False,
        "size": 5,
        "permissions": "-rw-r--r--",
        "extension": ".txt",
    } == entry
    assert (3, 1, 2) == tuple(answer[f"{n}_count"] for n in ("total", "directory", "file"))
    assert ["b.txt", "deep"] == listed(show_hidden=False)
    assert ["b.txt", "deep", "deep/a.py"] == listed(show_hidden=False, recursive=True)
    assert ["b.txt", "deep"] == listed(show_hidden=False, recursive=True, max_depth=1)
    assert ["deep/a.py"] == listed(recursive=True, file_types=[".py"])
    assert ["b.txt", "deep/a.py"] == listed(
        recursive=True, file_types=[".py", ".txt"], sort_by="size", sort_desc=True
    )
    assert "deep" == listed(sort_by="type")[0]


def upload(plane: DataPlane, content: Any, name: str = "f.bin", /, **form: str) -> Any:
    files = {"file": (name, content)}
    url = f"{plane.url}/v1/file/upload"
    return http.post(url, params=plane.query, files=files, data=form).json()


def test_a_file_keeps_a_non_ascii_name(plane: DataPlane) -> None:
    """Both its own name and the one in a path."""
    name = "ü 日本.bin"
    paths = [upload(plane, b"content", name, **form) for form in ({}, {"path": f"/tmp/{name}"})]

    assert [f"/home/gem/{name}", f"/tmp/{name}"] == [path["data"]["file_path"] for path in paths]
    assert b"content" == plane.get("/v1/file/download", path=f"/tmp/{name}").content


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"path": "/home/gem/new/there.bin"}, "/home/gem/new/there.bin"),
        ({"path": "/tmp"}, "/tmp/f.bin"),
        ({}, "/home/gem/f.bin"),
    ],
    ids=str,
)
def test_a_file_is_uploaded(plane: DataPlane, form: dict[str, str], expected: str) -> None:
    """To its path, into a directory by its own name, or to home."""
    data = bytes(range(256)) * 1000

    answer = upload(plane, data, **form)

    assert {
        "success": True,
        "message": "File uploaded successfully",
        "data": {"file_path": expected, "file_size": 256_000, "success": True},
        "hint": None,
    } == answer
    response = plane.get("/v1/file/download", path=expected, change_policy="abort")
    assert (data, "application/octet-stream", "256000") == (
        response.content,
        response.headers["content-type"],
        response.headers["content-length"],
    )
    assert ".upload-" not in plane.get("/v1/bash/sessions").text
    assert "" == plane.bash("ls -A ~ | grep upload; true")["stdout"]


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (
            b'--x\r\nContent-Disposition: form-data; name="path"\r\n\r\n/tmp/f\r\n--x--',
            "multipart/form-data; boundary=x",
        ),
        (b"{}", "application/json"),
    ],
)
def test_an_invalid_upload_is_refused(plane: DataPlane, content: bytes, content_type: str) -> None:
    """It leaves no partial file."""
    answer = http.post(
        f"{plane.url}/v1/file/upload",
        params=plane.query,
        content=content,
        headers={"Content-Type": content_type},
    ).json()

    assert not answer["success"]
    assert "" == plane.bash("ls -A ~")["stdout"]


@pytest.mark.parametrize(
    ("file", "kind", "number"),
    [
        ("/home/gem/none", "not_found", "ENOENT"),
        ("/home/gem", "is_a_directory", "EISDIR"),
        ("/home/gem/locked", "permission_denied", "EACCES"),
        ("/home/gem/pipe", "invalid_argument", "EINVAL"),
        ("a\0b", "invalid_argument", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_unreadable_file_says_why(
    double: Emulator, plane: DataPlane, file: str, kind: str, number: str | None
) -> None:
    """The error has the public sandbox's data, and a pipe does not block."""
    if file.endswith("locked") and double.settings.isolation == "none" and os.geteuid() == 0:
        pytest.skip("root without isolation reads everything")
    plane.bash("echo x > f; echo x > locked; chmod 000 locked; mkfifo pipe; ln -s loop loop")

    error = failure(plane, "read", file=file)

    assert (kind, number) == error[:2]
    assert error[2].startswith("Cannot read ")
    if "\0" not in file:
        response = plane.get("/v1/file/download", path=file)
        assert (False, True) == (response.json()["success"], response.status_code >= 400)


def test_names_that_are_not_utf8_are_found_and_listed(plane: DataPlane) -> None:
    """The bytes that cannot be sent are replaced."""
    plane.bash(r"mkdir names; touch names/b$'\xff' names/h$'\xed\xa0\x80'")

    found = plane.data("/v1/file/find", path="names", glob="*")["files"]
    listed = plane.data("/v1/file/list", path="names")["files"]

    expected = ["/home/gem/names/b\ufffd", "/home/gem/names/h\ufffd\ufffd\ufffd"]
    assert expected == found == [file["path"] for file in listed]


DEEP = "d/" * 1100 + "f"
LONG = "x" * 5000
ODD_FILES = {
    "memory": "/proc/self/mem",
    "attributes": "/proc/self/attr/current",
    "many directories": DEEP,
    "a long name": LONG,
    "no name": "",
    "a full device": "/dev/full",
    "a loop": "loop",
    "below a file": "f/f",
}
ODD_PATTERNS = {
    "many groups": "(" * 500,
    "many closed groups": "(" * 5000 + "a" + ")" * 5000,
    "many groups without numbers": "(?:" * 2000 + ")" * 2000,
    "a large number": "a{99999999999999}",
    "a long text": "x" * 300_000,
    "no end": "[",
}


def changing(plane: DataPlane, size: int) -> None:
    """Make a file that a background process changes until the session ends."""
    plane.bash(f"truncate -s {size} f; (while :; do echo x >> f; done) >/dev/null 2>&1 &")


def test_a_download_can_be_aborted_by_a_change(plane: DataPlane) -> None:
    """Clients repeat a 409."""
    changing(plane, 8_000_000)
    query = {"path": "/home/gem/f", "change_policy": "abort"}
    while (answer := plane.get("/v1/file/download", **query)).status_code == 200:
        pass

    data = answer.json()["data"]
    assert (409, "conflict", True) == (answer.status_code, data["error_type"], data["retryable"])
    assert 200 == plane.get("/v1/file/download", path="/home/gem/f").status_code


def test_a_large_download_is_broken_off_by_a_change(plane: DataPlane) -> None:
    """It has begun before the file changes."""
    changing(plane, 64_000_000)
    query = {"path": "/home/gem/f", "change_policy": "abort"}

    with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012
        while plane.get("/v1/file/download", **query).status_code == 200:
            pass


@pytest.mark.parametrize(
    ("query", "field"), [({"path": "f", "change_policy": "wait"}, "change_policy"), ({}, "path")]
)
def test_an_invalid_query_of_a_download_is_refused(
    plane: DataPlane, query: dict[str, str], field: str
) -> None:
    response = plane.get("/v1/file/download", **query)

    assert (422, ["query", field]) == (response.status_code, response.json()["detail"][0]["loc"])


@pytest.mark.parametrize("file", ODD_FILES.values(), ids=ODD_FILES)
def test_no_file_makes_a_route_fail(plane: DataPlane, file: str) -> None:
    """Each route answers with the operation and what is wrong, or with success."""
    plane.bash("echo x > f; ln -s loop loop")
    content = {"content": "x", "old_str": "x", "new_str": "y", "regex": "x"}
    answers = [
        *(plane.post(f"/v1/file/{name}", file=file, **content) for name in OF_A_FILE),
        *(plane.post(f"/v1/file/{name}", path=file, glob="*") for name in ("list", "find")),
        plane.get("/v1/file/download", path=file),
        http.post(
            f"{plane.url}/v1/file/upload",
            params=plane.query,
            files={"file": ("n", b"x")},
            data={"path": file},
        ),
        plane.post("/v1/bash/exec", command="pwd", exec_dir=file),
        plane.post("/v1/shell/exec", command="pwd", exec_dir=file),
        plane.post("/v1/code/execute", code="1", language="python", cwd=file),
    ]

    assert [] == [answer.text for answer in answers if answer.status_code >= 500]
    for answer in answers:
        if answer.headers["content-type"] == "application/json":
            document = answer.json()
            assert document["success"] or document["message"]


@pytest.mark.parametrize("pattern", ODD_PATTERNS.values(), ids=ODD_PATTERNS)
def test_no_pattern_makes_a_search_fail(plane: DataPlane, pattern: str) -> None:
    plane.bash("echo x > f")

    answers = [
        plane.post("/v1/file/search", file="f", regex=pattern),
        plane.post("/v1/file/find", path="/home/gem", glob=pattern),
    ]

    assert [200, 200] == [answer.status_code for answer in answers]
    assert not answers[0].json()["success"]
    assert answers[0].json()["message"].startswith("Cannot search ")


@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize("secret", ["../../etc/agentdouble-secret", "out/secret", "secret"])
def test_files_outside_the_session_are_unreachable(
    double: Emulator, plane: DataPlane, tmp_path: Any, operation: str, secret: str
) -> None:
    """Neither .. nor links lead out; isolated sessions do not even see them."""
    (tmp_path / "secret").write_text("secret")
    plane.bash(f"ln -s {tmp_path} out; ln -s {tmp_path}/secret secret")
    fields = {"content": "x", "old_str": "s", "new_str": "x", "regex": "."}

    failed = failure(plane, operation, file=f"/home/gem/{secret}", **fields)

    assert failed[0] in ("not_found", "permission_denied", "already_exists")
    assert "secret" == (tmp_path / "secret").read_text()
    if operation == "read":
        response = plane.get("/v1/file/download", path=f"/home/gem/{secret}")
        assert response.status_code in (403, 404)
        uploaded = upload(plane, b"x", path=f"/home/gem/{secret}")
        assert not uploaded["success"] or "secret" == (tmp_path / "secret").read_text()


def test_the_host_is_unreachable_through_proc(double: Emulator, plane: DataPlane) -> None:
    """The root of another process is no way out."""
    host = f"/proc/{os.getpid()}/root/etc/hostname"
    for path in (host, f"/proc/{os.getpid()}/environ"):
        assert failure(plane, "read", file=path)[0] in ("not_found", "permission_denied")


@pytest.mark.parametrize(
    ("operation", "body", "field"),
    [
        ("read", {}, "file"),
        ("read", {"file": "f", "sudo": True}, "sudo"),
        ("write", {"file": "f", "content": "", "encoding": "latin-1"}, "encoding"),
        ("list", {"path": "/tmp", "sort_by": "colour"}, "sort_by"),
    ],
    ids=str,
)
def test_a_body_with_invalid_fields_is_refused(
    plane: DataPlane, operation: str, body: dict[str, Any], field: str
) -> None:
    """The answer is 422 with the location, like FastAPI's."""
    response = plane.post(f"/v1/file/{operation}", **body)

    assert 422 == response.status_code
    assert ["body", field] == response.json()["detail"][0]["loc"]


@pytest.mark.slow
def test_uploads_have_their_own_limit() -> None:
    """upload_limit applies to uploads, body_limit to everything else."""
    with Emulator(body_limit=1000, upload_limit=5000, pool_size=0) as double:
        plane = data_plane(double)
        sizes = {
            size: http.post(
                f"{plane.url}/v1/file/upload",
                params=plane.query,
                files={"file": ("f", b"x" * size)},
            ).status_code
            for size in (3000, 6000)
        }
        written = plane.post("/v1/file/write", file="f", content="x" * 2000)

    assert ({3000: 200, 6000: 413}, 413) == (sizes, written.status_code)
    assert {
        "success": False,
        "message": "The request body is larger than 1000 bytes.",
        "data": None,
        "hint": None,
    } == written.json()
