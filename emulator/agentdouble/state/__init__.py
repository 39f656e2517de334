"""The state that outlives the process: records by kind and id, in memory or in a file."""

from agentdouble.state.changes import Change, Record, Undo, restoring, unbroken
from agentdouble.state.registry import Registry, Resource, digest, times_of
from agentdouble.state.store import MemoryStore, Store, check_url, make_store

__all__ = [
    "Change",
    "MemoryStore",
    "Record",
    "Registry",
    "Resource",
    "Store",
    "Undo",
    "check_url",
    "digest",
    "make_store",
    "restoring",
    "times_of",
    "unbroken",
]
