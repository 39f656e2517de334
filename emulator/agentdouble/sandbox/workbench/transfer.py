"""Uploads and downloads of files in pieces, so that no process has a whole file in memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import NotRequired, TypedDict

from agentdouble.openapi import Answer as Answered
from agentdouble.openapi import operation
from agentdouble.sandbox.workbench import content
from agentdouble.sandbox.workbench.content import as_failure, failure
from agentdouble.sandbox.workbench.paths import HOME, Paths
from agentdouble.sandbox.workbench.wire import Answer, Envelope, FailedError, render, without_body

_STATUS = {"not_found": 404, "permission_denied": 403}
_FIELD_LIMIT = 64 * 1024
_BYTES = "application/octet-stream"


class Upload(TypedDict):
    """A form with a file, and the path to which it is written."""

    file: Annotated[bytes, Field(json_schema_extra={"format": "binary"})]
    path: NotRequired[str]


class DownloadQuery(TypedDict):
    """The file, and what happens if it changes meanwhile."""

    path: str
    change_policy: NotRequired[Literal["abort"]]


class Transfer:
    """The routes for uploads to and downloads from a session."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def routes(self) -> list[Route]:
        """Return the two routes."""
        return [
            without_body("/v1/file/upload", self.upload, "POST"),
            without_body("/v1/file/download", self.download, "GET"),
        ]

    @operation(Envelope, body=Upload, body_type="multipart/form-data")
    async def upload(self, request: Request) -> Any:
        """Write the one file of a form to the path that the form gives, else to the home."""
        form = _Form(request, self._paths.real(HOME))
        try:
            with form.as_failure():
                await form.read()
            path = form.path or form.filename
            if form.part is None or not path:
                raise FailedError("The form must have a file, and a path or a name for it.")
            with as_failure("upload", path):
                size = await asyncio.to_thread(self._keep, form, path)
        finally:
            form.discard()
        shown = self._shown(path, form.filename)
        data = {"file_path": shown, "file_size": size, "success": True}
        return Answer(data, "File uploaded successfully")

    def _keep(self, form: _Form, path: str) -> int:
        assert form.part is not None
        target = self._paths.real(self._shown(path, form.filename))
        content.make_parents(target)
        if os.path.isdir(target):  # noqa: PTH112
            raise IsADirectoryError(21, "Is a directory", path)
        form.part.flush()
        size = os.fstat(form.part.fileno()).st_size
        form.move_to(target)
        return size

    def _shown(self, path: str, filename: str) -> str:
        """Return the target of an upload; if the path is a directory, add the file's own name."""
        name = os.path.basename(filename)  # noqa: PTH119
        if name and os.path.isdir(self._paths.real(path)):  # noqa: PTH112
            path = f"{path.rstrip('/')}/{name}"
        return os.path.join(HOME, path)  # noqa: PTH118

    @operation(Answered(bytes, media_type=_BYTES), query=DownloadQuery)
    async def download(self, request: Request) -> Response:
        """Return the content of a file; with ``change_policy=abort``, fail if it changes."""
        asked = request.query_params.get("path", "")
        try:
            with as_failure("download", asked):
                path = self._paths.real(asked)
                opened = content.open_regular(path, os.O_RDONLY)
        except FailedError as error:
            status = _STATUS.get(error.data["error_type"], 400)
            return render(Answer(error.data, str(error), success=False), status)
        if not os.fstat(opened).st_size:  # also that of a file in /proc, which has content
            with os.fdopen(opened, "rb") as file:
                return Response(file.read(content.READ_LIMIT), media_type=_BYTES)
        whole = request.query_params.get("change_policy") == "abort"
        return _Download(path, opened, whole=whole)


class _SentError(Exception):
    """The promised number of bytes has been sent."""


class _Download(FileResponse):
    """The response with an open file; if ``whole``, it breaks off when the path's file changes."""

    def __init__(self, path: str, opened: int, *, whole: bool) -> None:
        name = os.path.basename(path)  # noqa: PTH119
        # Through the descriptor, because the path may lead nowhere a moment later.
        super().__init__(f"/dev/fd/{opened}", media_type=_BYTES, filename=name)
        self._opened = opened
        self._shown = path
        self._before = os.fstat(opened) if whole else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with contextlib.suppress(_SentError):
                await super().__call__(scope, receive, self._bounded(send))
        finally:
            os.close(self._opened)

    def _bounded(self, send: Send) -> Send:
        """Send at most the promised number of bytes, because the file may grow, as a log does."""
        left = 0

        async def bounded(message: Message) -> None:
            nonlocal left
            if message["type"] == "http.response.start":
                left = int(Headers(raw=message["headers"])["content-length"])
                await send(message)
                return
            body = message["body"][:left]
            left -= len(body)
            more = message.get("more_body", False)
            if not more or left == 0:
                self._check()
            await send({**message, "body": body, "more_body": more and left > 0})
            if more and left == 0:
                raise _SentError  # else a file that grows as fast as it is read never ends

        return bounded

    def _check(self) -> None:
        if self._before is None:
            return
        now = os.stat(self._shown)  # noqa: PTH116
        if (now.st_size, now.st_mtime_ns) != (self._before.st_size, self._before.st_mtime_ns):
            raise failure("download", self._shown, ValueError("it was changed meanwhile"))


class _Form:
    """A multipart form whose file is written to disk while it arrives."""

    def __init__(self, request: Request, home: str) -> None:
        self.part: tempfile._TemporaryFileWrapper[bytes] | None = None
        self.path = ""
        self.filename = ""
        self._complete = False
        self._request = request
        self._home = home
        self._header = [b"", b""]
        self._headers: dict[str, str] = {}
        self._field = ""
        self._value = bytearray()

    async def read(self) -> None:
        """Read the form; raise FailedError if it is no form, OSError if it cannot be stored."""
        kind, options = parse_options_header(self._request.headers.get("content-type", ""))
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise FailedError("An upload is a form: multipart/form-data, with its boundary.")
        parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": lambda data, start, end: self._add(0, data[start:end]),
                "on_header_value": lambda data, start, end: self._add(1, data[start:end]),
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )
        async for chunk in self._request.stream():
            await asyncio.to_thread(parser.write, chunk)
        parser.finalize()
        if not self._complete:
            raise ValueError("the form ends before its last boundary")

    @contextlib.contextmanager
    def as_failure(self) -> Iterator[None]:
        """Turn errors raised inside into the failure of this upload, with its name if known."""
        try:
            yield
        except (OSError, ValueError) as error:
            kind = "io_error" if isinstance(error, OSError) else "invalid_argument"
            raise failure("upload", self.path or self.filename, error, kind) from error

    def _add(self, index: int, data: bytes) -> None:
        self._header[index] += data

    def _on_part_begin(self) -> None:
        self._headers, self._header, self._value = {}, [b"", b""], bytearray()

    def _on_header_end(self) -> None:
        # parse_options_header() takes bytes as latin-1; the values in it are decoded afterwards
        name, value = (part.decode("latin-1") for part in self._header)
        self._headers[name.lower()] = value
        self._header = [b"", b""]

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        if self._field == "file":
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")
            self.discard()
            self.part = tempfile.NamedTemporaryFile(  # noqa: SIM115 (it outlives this)
                dir=self._home, prefix=".upload-", delete=False
            )

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._field == "file" and self.part is not None:
            self.part.write(data[start:end])
        elif len(self._value) < _FIELD_LIMIT:
            self._value += data[start:end]

    def _on_part_end(self) -> None:
        if self._field == "path":
            self.path = self._value.decode("utf-8", "replace")

    def _on_end(self) -> None:
        self._complete = True

    def move_to(self, target: str) -> None:
        """Move the file to its target; raise OSError."""
        assert self.part is not None
        self.part.close()
        os.chmod(self.part.name, 0o644)  # noqa: PTH101
        shutil.move(self.part.name, target)
        self.part = None

    def discard(self) -> None:
        """Remove the received part of a file that is not kept."""
        if self.part is not None:
            self.part.close()
            with contextlib.suppress(OSError):
                os.unlink(self.part.name)  # noqa: PTH108
            self.part = None
