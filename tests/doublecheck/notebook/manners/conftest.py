"""A shared notebook with a double that serves an application."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import PATIENT, NotebookKernel, notebook_kernel

APPLICATION = """
import asyncio
import logging
import doublecheck
from agentdouble import SimpleApp

app = SimpleApp()
held = []

@app.entrypoint
async def answer(payload, headers):
    print("the application begins", flush=True)
    if payload["prompt"] == "log":
        logging.getLogger("mine").warning("the application logs")
    if payload["prompt"] == "fetch":
        import httpx
        async with httpx.AsyncClient() as client:
            await client.get(platform.url + "/ping")
    if payload["prompt"] == "fail":
        raise ValueError("the application fails")
    if payload["prompt"] == "wait":
        held.append((asyncio.get_running_loop(), asyncio.Event()))
        await held[-1][1].wait()
    return "done"

platform = doublecheck.connect(apps=[app])
awaited = doublecheck.AsyncPlatform(platform.target)
"""


@pytest.fixture(scope="package")
def notebook() -> Iterator[NotebookKernel]:
    """A notebook that keeps its state from test to test."""
    with notebook_kernel() as kernel:
        ran = kernel.run(APPLICATION + PATIENT)
        assert (None, "") == (ran.error, ran.stderr)
        yield kernel
        kernel.run("for loop, event in held: loop.call_soon_threadsafe(event.set)")
