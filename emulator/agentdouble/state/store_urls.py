"""The store that a URL names."""

from __future__ import annotations

import importlib.util

from agentdouble.core.imports import import_now
from agentdouble.errors import MissingExtraError, StateError
from agentdouble.state.store import Store

MEMORY = "memory"
_ENDINGS = (".db", ".sqlite", ".sqlite3")
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql://"


def make_store(url: str) -> Store:
    """Return the store of a URL: ``memory``, ``sqlite:///file`` or ``postgresql://...``.

    ``sqlite:///a.db`` is a file in the working directory, ``sqlite:////tmp/a.db`` an absolute
    path. Raises StateError for another URL, and MissingExtraError for PostgreSQL without its
    extra.
    """
    name = check_url(url)
    if name is None:
        return Store()
    if not name.startswith(_POSTGRESQL):
        import_now("agentdouble.state.sqlite")
        from agentdouble.state.sqlite import SqliteStore  # slow: 0.3 s

        return SqliteStore(name)
    if importlib.util.find_spec("asyncpg") is None:
        raise MissingExtraError("A state in PostgreSQL", extra="postgres")
    import_now("agentdouble.state.postgresql")
    from agentdouble.state.postgresql import PostgresqlStore  # slow: 0.3 s

    return PostgresqlStore(name)


def check_url(url: str) -> str | None:
    """Return the file or the server of a URL, or None for memory; raise StateError."""
    if url == MEMORY:
        return None
    if url.startswith(_POSTGRESQL) and len(url) > len(_POSTGRESQL):
        return url
    path = url.removeprefix(_SQLITE)
    if path != url and path and not path.startswith((":memory:", "file:")) and "?" not in path:
        return path
    scheme = url.partition(":")[0]
    if scheme.startswith("postgres"):  # the URL may hold a password
        raise StateError(
            "PostgreSQL is named by postgresql://USER:PASSWORD@HOST/DATABASE.", where=scheme
        )
    shown = "A URL with a user" if "@" in url else repr(url)
    if ":" not in url and url.endswith(_ENDINGS):
        raise StateError(f"A file is named by sqlite:///{url}, not {url!r}.", where=url)
    raise StateError(
        f"{shown} names no state. It is 'memory', 'sqlite:///FILE' (with four slashes for an "
        "absolute path), without options, or 'postgresql://USER:PASSWORD@HOST/DATABASE'.",
        where=url,
    )
