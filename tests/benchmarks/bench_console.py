"""The console's pages in Chromium: what they load, how soon they show a request, what they cost.

Run: python -m tests.benchmarks.bench_console [--minutes 10 --pages /] [--adk /path/to/bin/adk]

``--minutes`` is how long each page is watched at 100 requests a second. With ``--adk`` the first
paint of ``adk web`` of that program is measured beside the console's: each is new and empty, served
on this machine without isolation, and loaded into a browser context without a cache. ``adk web`` has
one agent and its default, sessions in a file; the double keeps them in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import random
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import psutil
from playwright.sync_api import sync_playwright

from agentdouble import Emulator
from agentdouble.sandbox.browser import chromium
from tests.agentdouble import calling

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 5
RATE = 100  # requests a second
LOADED = """() => {
  const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null;
  return { requests: all.length, paint, bytes: all.reduce((sum, one) => sum + one.transferSize, 0),
    elsewhere: all.filter((one) => new URL(one.name).origin !== location.origin).length };
}"""
ROWS = """() => {
  window.rows = {};
  new MutationObserver(() => requestAnimationFrame(() => {
    for (const one of document.querySelectorAll("[role=cell] a")) {
      rows[one.textContent] ??= performance.timeOrigin + performance.now();
    }
  })).observe(document.body, { childList: true, subtree: true });
}"""
CHANGED = """async (path) => {
  const start = performance.now();
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const wanted = path === "/" ? "[aria-label='Latest requests'] [role=cell]" : "main [role=cell]";
  do await frame(); while (!document.querySelector(wanted));
  await frame();
  return performance.now() - start;
}"""


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--minutes", type=float, default=0.2)
    options.add_argument("--pages", nargs="*", default=["/", "/requests", "/sessions"])
    options.add_argument("--adk", help="the program adk of an environment with google-adk")
    chosen = options.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.find(None), args=["--no-sandbox"]
        )
        first_load(browser, chosen.adk)
        until_the_row(browser)
        full(browser)
        busy(browser, chosen.minutes, chosen.pages)
        browser.close()


@contextlib.contextmanager
def console_page(browser: Browser, **settings: Any) -> Iterator[tuple[Emulator, Page]]:
    """Show the console of a new double."""
    with Emulator(console=True, pool_size=0, **settings) as double:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        open_(page, double.console_url or "")
        yield double, page
        page.context.close()


def open_(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_text("Connected").wait_for()


def first_load(browser: Browser, adk: str | None) -> None:
    with Emulator(console=True, pool_size=0) as double, adk_web(adk) as adk_url:
        for page_name, url in {"console": double.console_url or "", "adk web": adk_url}.items():
            loads = [loaded(browser, url) for _ in range(ROUNDS if url else 0)]
            if loads:
                paint = statistics.median(load["paint"] or 0 for load in loads)
                summary = "{bytes} bytes, {requests} requests, {elsewhere} elsewhere".format(
                    **loads[0]
                )
                print(f"first load of {page_name}: {summary}, first paint {paint:.0f} ms")


def loaded(browser: Browser, url: str) -> dict[str, Any]:
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.wait_for_function(
        "() => performance.getEntriesByName('first-contentful-paint').length > 0"
    )
    page.wait_for_load_state("load")
    figures: dict[str, Any] = page.evaluate(LOADED)
    context.close()
    return figures


@contextlib.contextmanager
def adk_web(program: str | None) -> Iterator[str]:
    """Run ``adk web``; yield its address, or nothing without the program."""
    if program is None:
        yield ""
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "agent").mkdir()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([program, "web", "--port", str(port), folder], **quiet)  # type: ignore[call-overload]
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=9)) as client:
                client.get(f"http://127.0.0.1:{port}/", timeout=60, follow_redirects=True)
            yield f"http://127.0.0.1:{port}/dev-ui/"
        finally:
            process.terminate()
            process.wait()


def until_the_row(browser: Browser) -> None:
    with console_page(browser) as (double, page):
        page.evaluate(ROWS)
        connection = http.client.HTTPConnection(urlsplit(double.url).netloc)
        sent = {}
        for place in range(200):
            path = f"/bench-{place}"
            sent[path] = time.time() * 1000
            connection.request("GET", path)
            connection.getresponse().read()
            page.wait_for_timeout(random.uniform(20, 200))
        page.wait_for_function("() => '/bench-199' in rows")
        rows = page.evaluate("() => rows")
        connection.close()
    took = sorted(rows[path] - at for path, at in sent.items())
    print(f"a request until its row: p50 {took[100]:.0f} ms, p95 {took[190]:.0f} ms")


def full(browser: Browser) -> None:
    with console_page(browser, max_instances=400) as (double, page):
        for place in range(200):
            calling.act(double, "CreateSession", ToolId=double.tool_id, UserSessionId=f"s{place}")
        for place in range(1000):
            calling.http.get(f"{double.url}/bench-{place}")
        opened = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            page.goto("about:blank")
            open_(page, double.console_url or "")
            page.get_by_role("link", name="/bench-999").wait_for()
            opened.append(time.perf_counter() - start)
        changes = [
            page.evaluate(CHANGED, path) for path in ("/requests", "/sessions", "/") * ROUNDS
        ]
        elements = []
        for path in ("/requests", "/sessions", "/"):
            page.evaluate(CHANGED, path)
            elements.append(page.locator("*").count())
    print(
        f"1,000 entries and 200 sessions: open {statistics.median(opened) * 1000:.0f} ms, change of "
        f"page {statistics.median(changes):.0f} ms (worst {max(changes):.0f}), elements {elements}"
    )


def busy(browser: Browser, minutes: float, pages: Sequence[str]) -> None:
    for path in pages:
        with console_page(browser) as (double, page), requests_to(double.url):
            page.evaluate(
                "(path) => { history.pushState(null, '', path);"
                " dispatchEvent(new PopStateEvent('popstate')); }",
                path,
            )
            page.wait_for_timeout(1000 * 1100 / RATE)  # until the journal is full
            heap, used, start = heap_of(page), cpu_of(browser), time.perf_counter()
            page.wait_for_timeout(minutes * 60_000)
            took = time.perf_counter() - start
            share = (cpu_of(browser) - used) / took
            print(
                f"{RATE} requests a second for {took:.0f} s on {path}: {share:.1%} of a core, "
                f"heap {heap:.1f}, then {heap_of(page):.1f} MB"
            )


@contextlib.contextmanager
def requests_to(url: str) -> Iterator[None]:
    """Send a double ``RATE`` requests a second."""
    ends = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        due = time.perf_counter()
        while not ends.wait(max(0, due - time.perf_counter())):
            due += 1 / RATE
            connection.request("GET", "/list-apps")
            connection.getresponse().read()
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    ends.set()
    thread.join()


def cpu_of(browser: Browser) -> float:
    """Return the CPU seconds of the pages' processes."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    pids = [process["id"] for process in processes if process["type"] == "renderer"]
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def heap_of(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used / 1e6


if __name__ == "__main__":
    main()
