"""The abilities of sandbox sessions here: JavaScript, browsers, protection of the double."""

from __future__ import annotations

import subprocess

from agentdouble.cli.doctor.findings import Finding, extra, lacking, version_told_by
from agentdouble.sandbox.browser import chromium
from agentdouble.sandbox.javascript import deno


def find() -> list[Finding]:
    """Try the JavaScript engine, the browser, and the library for its screenshots and actions."""
    return [_javascript(), _browser()]


def _javascript() -> Finding:
    try:
        command = deno.find()
        version = version_told_by([command, "--version"])
    except deno.DenoMissingError:
        return lacking("javascript", "JavaScript", "deno is not installed", extra("emulator"))
    except (OSError, subprocess.SubprocessError) as error:
        return lacking("javascript", "JavaScript", error, extra("emulator"))
    return Finding("javascript", "JavaScript", f"and TypeScript: {version} at {command}")


def _browser() -> Finding:
    named = _named()
    path = chromium.find(named)
    if path is None:
        why = f"no {named}" if named else "no Chromium"
        return lacking("browser", "browser", why, chromium.INSTALL)
    try:
        version = version_told_by([path, "--version"])
    except (OSError, subprocess.SubprocessError) as error:
        return lacking("browser", "browser", error, chromium.INSTALL)
    return Finding("browser", "browser", f"{version} at {path}")


def _named() -> str | None:
    """Return the browser of the settings, or None without one or without the extra emulator."""
    from agentdouble.errors import SettingsError

    try:
        from agentdouble.settings import Settings

        return Settings.load().browser
    except (ImportError, SettingsError):
        return None
