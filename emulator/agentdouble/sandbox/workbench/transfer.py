"""Uploads and downloads of files in pieces, so that no process has a whole file in memory."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError
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
    wrong_fields,
)

_STATUS = {"not_found": 404, "permission_denied": 403, "conflict": 409}
_BYTES = "application/octet-stream"
_PIECE = 256 * 1024


class Upload(TypedDict):
    """A form with a file, and the path to which it is written."""

    file: Annotated[bytes, Field(json_schema_extra={"format": "binary"})]
    path: NotRequired[str]


class DownloadQuery(BaseModel):
    """The file, and what happens if it changes meanwhile."""

    model_config = ConfigDict(frozen=True)

    path: str
    change_policy: Literal["abort"] | None = None


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
        """Return the content of a file.

        With ``change_policy=abort``, a file that changes meanwhile is a 409. One that is too large
        to be read before the answer breaks it off.
        """
        try:
            query = DownloadQuery.model_validate(dict(request.query_params))
        except ValidationError as error:
            return wrong_fields(error, "query")
        try:
            with as_failure("download", query.path):
                return await self._send(query)
        except FailedError as error:
            code = _STATUS.get(error.data["error_type"], 400)
            return envelope(error.data, str(error), success=False, status=code)

    async def _send(self, query: DownloadQuery) -> Response:
        must_be_whole = query.change_policy == "abort"
        real = self._paths.real(query.path)
        file = os.fdopen(content.open_regular(real, os.O_RDONLY), "rb", 0)
        status = os.fstat(file.fileno())
        name = quote(os.path.basename(query.path))  # noqa: PTH119
        headers = {"Content-Disposition": f"attachment; filename*=utf-8''{name}"}
        if not status.st_size:  # also that of a file in /proc, which has content
            with file:
                return Response(file.read(content.READ_LIMIT), media_type=_BYTES)
        pieces = _pieces(file, status, query.path if must_be_whole else None)
        if must_be_whole and status.st_size <= content.READ_LIMIT:
            data = b"".join([piece async for piece in pieces])
            return Response(data, headers=headers, media_type=_BYTES)
        headers["Content-Length"] = str(status.st_size)
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
        while remaining:
            piece = await asyncio.to_thread(file.read, min(remaining, _PIECE))
            now = os.fstat(file.fileno())
            if watched and (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                changed = OSError(errno.EBUSY, "it has changed meanwhile")
                raise failure("download", watched, changed, "conflict")
            if not piece:
                return
            remaining -= len(piece)
            yield piece
