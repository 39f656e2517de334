"""The platforms that the magics run code on: a notebook's variable, a named one, or a double."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from doublecheck.api.connect import connect
from doublecheck.client._async.platform import AsyncPlatform
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import DoubleCheckError
from doublecheck.magics.messages import refuse, write_line
from doublecheck.values.session_snapshots import SessionSnapshot

DOUBLE, VARIABLE = "double", "platform"
_URL = ("http://", "https://")
_NAMED = re.compile(r"(?P<name>[A-Za-z_][\w-]*)\s*=(?!=)\s*(?P<what>.*)", re.DOTALL)


@dataclass(frozen=True)
class Named:
    """A platform and its name in the notebook."""

    name: str
    platform: Platform

    def __str__(self) -> str:
        kind = self.platform.target.kind
        called = "" if self.name == kind else f"{self.name}, "
        return f"{called}{kind} at {self.platform.url}"


@dataclass(frozen=True)
class KeptSession:
    """A snapshot of the session that cells call ``session``."""

    session: str
    snapshot: SessionSnapshot


class Platforms:
    """The platforms that cells can run on, and the current one.

    The current platform is the one of the last ``%sandbox use``, else the notebook's variable
    ``platform``, else a new double, which starts when it is first needed. ``close()`` closes the
    platforms that were opened here.
    """

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._used: dict[str, Platform | None] = {}  # None: the current value of the variable
        self._chosen: str | None = None
        self._last: Named | None = None  # the last one used; None after %sandbox use
        self._double: Platform | None = None
        self._sync: dict[int, tuple[AsyncPlatform, Platform]] = {}
        self._opened = ExitStack()
        self.snapshots: dict[tuple[str, str], KeptSession] = {}  # by the platform's URL and a name

    def current(self) -> Named:
        """Return the current platform; start a double if there is none."""
        return self.known_current() or Named(DOUBLE, self.double())

    def for_cell(self, name: str | None) -> Named:
        """Return the platform that a cell runs on; print a line if the current one has changed."""
        named = self.find(name)
        if name is None:
            if self._last is not None and self._last.platform.url != named.platform.url:
                back = self._last.name == DOUBLE and named.name != DOUBLE
                hint = "; %sandbox use double goes back" if back else ""
                write_line(f"Cells run on {named} from now on{hint}.")
            self._last = named
        return named

    def known_current(self) -> Named | None:
        """Return the current platform, or None if it is a double that has not started yet."""
        if self._chosen is not None and self._chosen != DOUBLE:
            return self.find(self._chosen)
        # %sandbox use is explicit, but the variable may exist for other reasons
        variable = None if self._chosen == DOUBLE else self._variable(VARIABLE)
        if variable is not None:
            return Named(VARIABLE, variable)
        return None if self._double is None else Named(DOUBLE, self._double)

    def known(self, name: str | None) -> Named | None:
        """Return the platform with this name, by default the current one, if it has started."""
        if name is None:
            return self.known_current()
        found = self._double if name == DOUBLE else self._used.get(name) or self._variable(name)
        return None if found is None else Named(name, found)

    def find(self, name: str | None) -> Named:
        """Return the platform with this name, by default the current one; raise UsageError."""
        if name is None:
            return self.current()
        if name == DOUBLE:
            return Named(DOUBLE, self.double())
        if name.startswith(_URL):
            return self._at(name)
        found = self.known(name)
        if found is None:
            refuse(
                f"There is no platform {name!r} here. There are: {', '.join(self.names())}. "
                "%sandbox use NAME=URL names another, or give its URL, with http:// or https://."
            )
        return found

    def names(self) -> tuple[str, ...]:
        """Return the names of all platforms: variables and platforms in use."""
        variables = (name for name in self._variables if self._is_platform(name))
        return tuple(sorted({DOUBLE, *variables, *filter(self.known, self._used)}))

    def others(self, than: Named | None) -> Iterator[Named]:
        """Yield the other platforms that have started, each once."""
        found = filter(None, map(self.known, dict.fromkeys([*self._used, VARIABLE, DOUBLE])))
        url = than and than.platform.url
        return (one for one in found if one.platform.url != url)

    def double(self) -> Platform:
        """Return the magics' own double; start it if needed."""
        if self._double is None:
            self._double = self._opened.enter_context(connect())
        return self._double

    def use(self, text: str) -> Named | None:
        """Switch to a platform by expression, URL or name; None means the magics' own double.

        A prefix ``NAME=`` gives it a name. Raises UsageError.
        """
        self._last = None
        named = _NAMED.fullmatch(text.strip())
        name, what = (named["name"], named["what"]) if named else (None, text.strip())
        if not what:
            refuse("%sandbox use takes a URL, an expression that is a platform, or double.")
        if name is None and what == DOUBLE:
            self._chosen = DOUBLE
            return self.known_current()
        name = name or _named_after(what)
        if name == DOUBLE:
            refuse(f"{DOUBLE!r} is the magics' own double: give the platform another name.")
        self._used[name] = self._meant(name, what)
        self._chosen = name
        return self.known_current()

    def _meant(self, name: str, what: str) -> Platform | None:
        """Resolve an expression, URL or name; None means that the variable is looked up later."""
        if name == what and self._variable(what) is not None:
            return None
        anew = isinstance(self._variables.get(what), (str, _emulator()))
        return (None if anew else self._used.get(what)) or self._opened_at(what)

    def close(self) -> None:
        """Close the magics' own double and the connections to URLs."""
        self._used.clear()
        self._sync.clear()
        self.snapshots.clear()
        self._chosen = self._double = self._last = None
        self._opened.close()

    def _at(self, url: str) -> Named:
        """Return the platform at a URL: a known one, whose keys are available, or a new one."""
        for known in filter(None, map(self.known, self.names())):
            if known.platform.url == url.rstrip("/"):
                return known
        name = _named_after(url)
        self._used[name] = opened = self._opened_at(url)
        return Named(name, opened)

    def _opened_at(self, what: str) -> Platform:
        if what.startswith(_URL):
            return self._opened.enter_context(connect(what))
        value = self._value(what)
        found = self._platform_of(value)
        if found is not None:
            return found
        if not isinstance(value, (str, _emulator())):
            refuse(
                f"{what} is a {type(value).__name__}, not a platform. %sandbox use takes a "
                "Platform, as connect(URL) returns it, or a URL."
            )
        return self._opened.enter_context(connect(value))

    def _value(self, expression: str) -> Any:
        try:
            return eval(expression, dict(self._variables))  # noqa: S307 (the user's own code)
        except (SyntaxError, NameError) as error:
            refuse(
                f"{expression} is no platform ({error.args[0]}). There are: "
                f"{', '.join(self.names())}; a URL begins with http:// or https://."
            )
        except DoubleCheckError:
            raise
        except Exception as error:
            refuse(f"{expression} raised {type(error).__name__}: {error}")

    def _variable(self, name: str) -> Platform | None:
        return self._platform_of(self._variables.get(name))

    def _is_platform(self, name: str) -> bool:
        found = isinstance(self._variables.get(name), (Platform, AsyncPlatform))
        return found and not name.startswith("_")

    def _platform_of(self, value: Any) -> Platform | None:
        if isinstance(value, AsyncPlatform):
            if id(value) not in self._sync:
                opened = self._opened.enter_context(Platform(value.target))
                self._sync[id(value)] = (value, opened)  # stored, so that its id stays unique
            return self._sync[id(value)][1]
        return value if isinstance(value, Platform) else None


def _emulator() -> Any:
    """Return the class of doubles, or an empty tuple if it was never imported."""
    module = sys.modules.get("agentdouble.emulator")
    return str if module is None else module.Emulator


def _named_after(what: str) -> str:
    return what if what.isidentifier() else re.sub(r"\W+", "-", what.partition("://")[2] or what)
