"""What outlives the process: records by kind and id, in memory or in a file."""

from agentdouble.state.store import MemoryStore, Record, Store, check_url, make_store

__all__ = ["MemoryStore", "Record", "Store", "check_url", "make_store"]
