"""The chromium command: path, arguments, environment, and whether its own sandbox works here."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from agentdouble.processes.fork_server import linux

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
_MACOS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
INSTALL = "apt-get install chromium (Debian), dnf install chromium (Fedora), brew install chromium"
_SHARED_MEMORY = 512 * 1024 * 1024  # bytes; pages with large pictures need it

_FEATURES = (
    *("AutofillServerCommunication", "MediaRouter", "OptimizationHints", "Translate"),
    *("WebUIOmniboxAimPopup", "WebUIOmniboxPopup"),  # clients would mistake them for pages
)
# Quiet: no background requests, reports or prompts.
_SWITCHES = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    f"--disable-features={','.join(_FEATURES)}",
    "--disable-gpu",
    "--disable-prompt-on-repost",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    "--disk-cache-size=67108864",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--no-service-autorun",
    "--password-store=basic",
    "--use-mock-keychain",
)


def find(name: str | None) -> str | None:
    """Return the path of the named browser, or of the first known one; None if it is missing."""
    for candidate in (name,) if name else (*NAMES, *_MACOS):
        path = shutil.which(candidate)
        if path is not None:
            return path
    return None


def command(browser: str, profile: Path, *, size: tuple[int, int], sandbox: bool) -> list[str]:
    """Return the command for a browser that is driven through descriptors 3 and 4."""
    width, height = size
    return [
        browser,
        *_SWITCHES,
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
        *([] if sandbox else ["--no-sandbox"]),
        *(["--disable-dev-shm-usage"] if _shared_memory() < _SHARED_MEMORY else []),
        "about:blank",
    ]


def environment(directory: Path) -> Mapping[str, str]:
    """Return the environment for a browser that keeps its own files in ``directory``."""
    return {
        **os.environ,
        "XDG_CACHE_HOME": str(directory / "cache"),
        "XDG_CONFIG_HOME": str(directory / "config"),
        "XDG_DATA_HOME": str(directory / "data"),
        "DBUS_SESSION_BUS_ADDRESS": "disabled:",  # else it starts a bus and logs many lines
        "DBUS_SYSTEM_BUS_ADDRESS": "disabled:",
    }


def _shared_memory() -> int:
    try:
        filesystem = os.statvfs("/dev/shm")  # noqa: S108 (only measured)
    except OSError:
        return _SHARED_MEMORY  # not Linux: /dev/shm is not used
    return filesystem.f_bsize * filesystem.f_bavail


def sandbox_is_possible() -> bool:
    """Return whether Chromium's own sandbox, which isolates its pages, is possible here.

    The sandbox needs namespaces inside the session's namespaces, which containers often refuse.
    Without them Chromium ends at once, so a child process tries to create them first.
    """
    if sys.platform != "linux":
        return True
    if os.geteuid() == 0:  # Chromium refuses to run as root
        return False
    child = os.fork()
    if child == 0:
        code = 1
        try:
            uid = os.geteuid()
            linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET | linux.CLONE_NEWPID)
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
