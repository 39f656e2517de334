import asyncio
from collections.abc import Generator

# A pytester run forgets what it has imported. These would not work if they were imported in one
# and once more after it: httpx knows its errors by the classes of httpcore, and two copies of
# protobuf's messages end the process.
import a2a.types  # noqa: F401
import httpcore  # noqa: F401
import pytest

pytest_plugins = ["pytester"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give pytest-asyncio a loop to put back, as it makes one otherwise and never closes it."""
    if item.get_closest_marker("asyncio") is None:
        return (yield)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return (yield)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
