from __future__ import annotations

import asyncio
import sys

import pytest

from agentdouble.errors import MissingExtraError, StateError
from agentdouble.state import make_store

pytestmark = pytest.mark.libraries


def refusal(url: str) -> str:
    """Return why a store cannot be opened."""

    async def do() -> str:
        store = make_store(url)
        with pytest.raises(StateError) as caught:
            await store.open()
        await store.close()
        return str(caught.value)

    return asyncio.run(do())


@pytest.fixture(autouse=True)
def _driver() -> None:
    pytest.importorskip("asyncpg", reason="asyncpg is not installed: pip install asyncpg")


def test_a_server_that_does_not_answer_is_named() -> None:
    """Without the password."""
    told = refusal("postgresql://ann:secret@127.0.0.1:1/db")

    assert told.startswith(
        "The state database postgresql://ann:***@127.0.0.1:1/db cannot be opened"
    )
    assert "secret" not in told


def test_a_database_that_does_not_exist_is_named(postgresql_url: str) -> None:
    """With what the server says."""
    told = refusal(postgresql_url.replace("/postgres", "/nothing"))

    assert 'database "nothing" does not exist' in told


def test_a_database_belongs_to_one_double_at_a_time(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one is told so; when the first has gone, it may."""
    from agentdouble.state import postgresql

    monkeypatch.setattr(postgresql, "_LOCK_TIMEOUT_S", 0.1)

    async def do() -> tuple[str, bool]:
        first, second = make_store(postgresql_url), make_store(postgresql_url)
        await first.open()
        with pytest.raises(StateError) as caught:
            await second.open()
        await first.close()
        await second.open()
        await second.close()
        return str(caught.value), True

    told, opened = asyncio.run(do())

    assert "cannot be used" in told
    assert told.endswith("Another double uses it.")
    assert opened


@pytest.mark.parametrize("url", ["postgresql://a:b:c@d:e/f", "postgresql://host:port/db"])
def test_a_wrong_url_is_refused(url: str) -> None:
    """Before anything is asked."""
    with pytest.raises(StateError, match="This names no database"):
        make_store(url)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the driver is not installed."""
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(MissingExtraError, match=r"pip install 'agentdouble\[postgres\]'"):
        make_store("postgresql://host/db")
