"""Uploads and downloads of files in pieces, so that no process has a whole file in memory."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from pydantic import Field
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from typing_extensions import NotRequired, TypedDict

from agentdouble.openapi import Answer as Answered
from agentdouble.openapi import operation
from agentdouble.sandbox.workbench import content
from agentdouble.sandbox.workbench.content import as_failure, failure
from agentdouble.sandbox.workbench.wire import (
    HOME,
    Envelope,
    FailedError,
    Paths,
    WorkbenchAnswer,
    envelope,
    without_body,
)

_STATUS = {"not_found": 404, "permission_denied": 403}
_BYTES = "application/octet-stream"
_PIECE = 256 * 1024


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
        try:
            async with request.form(max_files=1) as form:
                return await self._take(form.get("file"), form.get("path"))
        except HTTPException as error:
            raise FailedError(f"Invalid form: {error.detail}") from None
        except OSError as error:  # the session has no room for it
            raise failure("upload", "the file", error) from None

    async def _take(
        self, file: UploadFile | str | None, path: UploadFile | str | None
    ) -> WorkbenchAnswer:
        if not isinstance(file, UploadFile) or not (path or file.filename):
            raise FailedError("The form must have a file, and a path or a name for it.")
        name = file.filename or ""
        with as_failure("upload", str(path or name)):
            target = self._target(str(path or name), name)
            size = await asyncio.to_thread(_write, file.file, self._paths.real(target))
        data = {"file_path": target, "file_size": size, "success": True}
        return WorkbenchAnswer(data, "File uploaded successfully")

    def _target(self, path: str, filename: str) -> str:
        """Return the target of an upload; if the path is a directory, add the file's own name."""
        name = os.path.basename(filename)  # noqa: PTH119
        if name and os.path.isdir(self._paths.real(path)):  # noqa: PTH112
            path = f"{path.rstrip('/')}/{name}"
        return os.path.join(HOME, path)  # noqa: PTH118

    @operation(Answered(bytes, media_type=_BYTES), query=DownloadQuery)
    async def download(self, request: Request) -> Response:
        """Return the content of a file; with ``change_policy=abort``, fail if it changes."""
        path = request.query_params.get("path", "")
        try:
            with as_failure("download", path):
                real = self._paths.real(path)
                file = os.fdopen(content.open_regular(real, os.O_RDONLY), "rb", 0)
                status = os.fstat(file.fileno())
                if not status.st_size:  # also that of a file in /proc, which has content
                    with file:
                        return Response(file.read(content.READ_LIMIT), media_type=_BYTES)
        except FailedError as error:
            code = _STATUS.get(error.data["error_type"], 400)
            return envelope(error.data, str(error), success=False, status=code)
        must_be_whole = request.query_params.get("change_policy") == "abort"
        pieces = _pieces(file, status, path if must_be_whole else None)
        headers = {
            "Content-Length": str(status.st_size),
            "Content-Disposition": f"attachment; filename*=utf-8''{quote(os.path.basename(path))}",  # noqa: PTH119
        }
        return StreamingResponse(pieces, headers=headers, media_type=_BYTES)


def _write(source: BinaryIO, target: str) -> int:
    """Write an uploaded file to its target, which appears when it is complete; return its size."""
    content.make_parents(target)
    part = f"{target}.upload-{os.getpid()}"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            shutil.copyfileobj(source, file, _PIECE)
            size = file.tell()
        os.replace(part, target)  # noqa: PTH105
    except BaseException:
        if os.path.exists(part):  # noqa: PTH110
            os.unlink(part)  # noqa: PTH108
        raise
    return size


async def _pieces(
    file: BinaryIO, before: os.stat_result, watched: str | None
) -> AsyncIterator[bytes]:
    """Yield a file's original size in bytes; fail if a ``watched`` file has changed."""
    remaining = before.st_size
    with file:
        while remaining and (piece := await asyncio.to_thread(file.read, min(remaining, _PIECE))):
            remaining -= len(piece)
            now = os.fstat(file.fileno())
            if watched and (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise failure("download", watched, ValueError("it has changed meanwhile"))
            yield piece
