"""The state that outlives the process: records by kind and id, in memory or in a database."""

from agentdouble.state.registry import Registry, Resource, digest, times_of
from agentdouble.state.store import Change, Record, Store, check_url, make_store, unbroken

__all__ = [
    "Change",
    "Record",
    "Registry",
    "Resource",
    "Store",
    "check_url",
    "digest",
    "make_store",
    "times_of",
    "unbroken",
]
