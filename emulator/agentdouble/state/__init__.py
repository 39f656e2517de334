"""What outlives the process: records by kind and id, in memory or in a file."""

from agentdouble.state.changes import Change, Record, Undo, restoring, unbroken
from agentdouble.state.store import MemoryStore, Store, check_url, make_store

__all__ = [
    "Change",
    "MemoryStore",
    "Record",
    "Store",
    "Undo",
    "check_url",
    "make_store",
    "restoring",
    "unbroken",
]
