"""The snapshots in the store: their records, and the files of their sessions.

Processes end with the double, so a later double resumes a saved snapshot with its files only.
"""

from __future__ import annotations

import base64
import logging
from dataclasses import replace

from agentdouble.core.threads import run_in_thread
from agentdouble.errors import SnapshotRefusedError
from agentdouble.processes.files_snapshot import ArchivedFiles, archive
from agentdouble.sandbox.session_processes import EmptySnapshot, Snapshot
from agentdouble.sandbox.session_snapshot import SessionSnapshot
from agentdouble.state import Change, Store

KIND, FILES_KIND = "session_snapshot", "session_snapshot_files"
LARGEST = 64 * 1024 * 1024  # bytes of the files of a snapshot that is saved
_CHUNK = 1024 * 1024  # bytes of an archive in one record
_KERNEL = "the Python kernel"

_log = logging.getLogger(__name__)


class SavedSnapshots:
    """The snapshots in a store, if it outlives the double; otherwise nothing is saved."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._chunks: dict[str, int] = {}  # how many records have the files of a snapshot

    async def load(self) -> list[SessionSnapshot]:
        """Return the saved snapshots, oldest first; their processes are gone."""
        records = await self._store.load(KIND)
        for id_, record in records.items():
            self._chunks[id_] = record["chunks"]
        snapshots = [SessionSnapshot.of(id_, record) for id_, record in sorted(records.items())]
        return [replace(it, omitted=(*dict.fromkeys((_KERNEL, *it.omitted)),)) for it in snapshots]

    async def save(self, snapshot: SessionSnapshot, state: Snapshot) -> None:
        """Save a snapshot that is ready; raise StateError, and OSError if its files cannot be read.

        A snapshot on a node, and one with more than 64 MiB of files, is not saved.
        """
        if not self._store.outlives:
            return
        files = state.files
        chunks: list[str] = []
        if files is not None:
            if state.size > LARGEST:
                _log.warning("%s is not saved: its files have more than 64 MiB.", snapshot.id)
                return
            data = await run_in_thread(lambda: archive(files))
            starts = range(0, len(data), _CHUNK)
            chunks = [base64.b64encode(data[at : at + _CHUNK]).decode() for at in starts]
        elif not isinstance(state, EmptySnapshot):
            _log.warning("%s is not saved: it is on a node.", snapshot.id)
            return
        record = {**snapshot.to_record(), "chunks": len(chunks)}
        self._chunks[snapshot.id] = len(chunks)
        pieces = (
            Change(FILES_KIND, _piece(snapshot.id, number), {"data": chunk})
            for number, chunk in enumerate(chunks)
        )
        await self._store.write(Change(KIND, snapshot.id, record), *pieces)

    async def read(self, snapshot: SessionSnapshot) -> Snapshot:
        """Return the saved files of a snapshot; raise SnapshotRefusedError if they are missing."""
        count = self._chunks.get(snapshot.id, 0)
        if not count:
            return EmptySnapshot()
        data = bytearray()
        for number in range(count):
            record = await self._store.read(FILES_KIND, _piece(snapshot.id, number))
            if record is None:
                raise SnapshotRefusedError("its saved files are gone", "InvalidSnapshot.NotReady")
            data += base64.b64decode(record["data"])
        return ArchivedFiles(bytes(data), snapshot.omitted)

    def forget(self, snapshot_id: str) -> None:
        """Remove a snapshot from the store, if it is there."""
        if snapshot_id in self._chunks:
            self._store.put(Change(KIND, snapshot_id))
            for number in range(self._chunks.pop(snapshot_id)):
                self._store.put(Change(FILES_KIND, _piece(snapshot_id, number)))


def _piece(snapshot_id: str, number: int) -> str:
    return f"{snapshot_id}/{number:06d}"
