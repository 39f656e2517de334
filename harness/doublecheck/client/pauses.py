"""Pauses of clients that ask a platform again."""

from __future__ import annotations

import asyncio
import time


async def pause_async(seconds: float) -> None:
    """Wait without blocking the event loop."""
    await asyncio.sleep(seconds)


def pause(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)
