"""Pictures of the web console: a double that has been used a little."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from agentdouble import Emulator, SimpleApp, run_code
from notebooks.pictures.screenshots import SIZE, invoke, save
from tests.agentdouble.calling import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_PLOT = """\
import numpy as np, matplotlib.pyplot as plt

hours = np.linspace(0, 24, 200)
plt.figure(figsize=(5, 1.9))
plt.plot(hours, 20 + 4 * np.sin(hours / 4))
plt.show()
"""

planner = SimpleApp("planner")


@planner.entrypoint
async def _answer(payload: dict[str, Any], _headers: dict[str, str]) -> str:
    """Ask the model what to run, and run it."""
    question = {"model": "m", "messages": [{"role": "user", "content": payload["prompt"]}]}
    key = {"Authorization": f"Bearer {payload['key']}"}
    async with httpx.AsyncClient() as client:
        told = (await client.post(payload["url"], json=question, headers=key)).json()
    code = told["choices"][0]["message"]["content"]
    return await asyncio.to_thread(run_code, code)


def draw(browser: Browser, folder: Path) -> None:
    """Write ``console-overview.png``, ``-session``, ``-request`` and ``-timeline`` there."""
    _draw_pages(browser, folder)
    _draw_timeline(browser, folder)


def _draw_pages(browser: Browser, folder: Path) -> None:
    page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
    with Emulator(console=True) as double, page:
        page.goto(double.console_url or "")
        for session in ("mon", "tue", "wed"):
            code = "temperature = 21.5\nprint(f'{temperature} degrees')"
            invoke(double, session, {"prompt": code})
        invoke(double, "mon", {"prompt": "temperature / 0"})
        double.clock.advance(minutes=11)
        invoke(double, "thu", {"prompt": "print('new today')"})
        run(double, "print(temperature)", "coder_ann_thu", language="python")
        page.get_by_role("link", name="coder_ann_thu").wait_for()
        page.get_by_text("running").wait_for(state="detached")
        page.get_by_text("busy").wait_for(state="detached")
        save(page, folder / "console-overview.png")

        page.get_by_role("link", name="coder_ann_mon").click()
        page.get_by_role("textbox", name="Code").fill(_PLOT)
        page.get_by_role("textbox", name="Code").press("Shift+Enter")
        page.locator("img.out").wait_for()
        page.get_by_text("linspace").last.wait_for()
        save(page, folder / "console-session.png")

        page.get_by_role("link", name="Requests", exact=True).click()
        page.get_by_role("table", name="Requests", exact=True).get_by_role(
            "link", name="InvokeTool"
        ).nth(1).click()  # the one with the language python
        page.get_by_role("heading", name="InvokeTool").wait_for()
        page.get_by_text("What if two-names?").click()
        page.get_by_text("Use two-names from now on").wait_for()
        save(page, folder / "console-request.png")


def _draw_timeline(browser: Browser, folder: Path) -> None:
    page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
    with Emulator(planner, console=True, pool_size=0) as double, page:
        page.goto(double.console_url or "")
        script = {"steps": [{"text": "sum(n * n for n in range(300_000))"}]}
        token = {"Authorization": f"Bearer {double.token}"}
        httpx.post(f"{double.url}/_emulator/model", json=script, headers=token).raise_for_status()
        model = double.environment("model")
        question = {
            "prompt": "Add the squares below 300,000.",
            "url": f"{model['OPENAI_BASE_URL']}/chat/completions",
            "key": model["OPENAI_API_KEY"],
        }
        invoke(double, "mon", question)
        page.get_by_role("link", name="Requests", exact=True).click()
        page.get_by_role("table", name="Requests", exact=True).get_by_role(
            "link", name="/invoke"
        ).click()
        page.get_by_role("heading", name="Timeline").wait_for()
        save(page, folder / "console-timeline.png")
