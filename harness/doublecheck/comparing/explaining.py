"""Decide which differences an unknown explains.

The double's answer names the unknowns that it relied on. Such an unknown explains a difference only
if the difference is in the part of the answer that the unknown is about. For example, an unknown
signing scheme does not explain a different text of an output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from doublecheck.comparing.differences import Difference

_ALL = r".*"
_STATUS = r"value status .*"
# a status 409 belongs to U-SESSION-DUPLICATE, whatever fields a creation takes
_CREATED = r"value status (?!409 )\S+ (?!409$).*"
_REFUSED = r"value status \d+ 40[13]"
_FIELDS = r"(only double|only live|type) "
_EVENT_FIELD = r"(\$|events|\$\.events)\[\d+\](\$)?\.(?!content\b|error\b).*"

# the parts that each unknown is about, as regular expressions over "kind path" (and both statuses)
_ABOUT = {
    "U-INVOKE-HEADERS": (_STATUS,),
    "U-INVOKE-ENVELOPE": (r"type \$",),
    "U-INVOKE-ERROR": (_ALL,),
    "U-INVOKE-STREAM-ERROR": (r"only (double|live) events\[\d+\]\$\.(?!error$)\w+",),
    "U-INVOKE-SSE-CHUNK": (r"type events\[\d+\]\$",),
    "U-PROBE-BODIES": (r".* (content-type|\$.*)",),
    "U-PROBE-ERROR": (_ALL,),
    "U-PING-SLOW": (_ALL,),
    "U-HEALTH-CLASH": (r".* (content-type|\$.*)",),
    "U-API-HEALTH": (r".* (content-type|\$.*)",),
    "U-API-VERSION": (r".* (content-type|\$.*)",),
    "U-LIST-APPS": (rf"type \$(\[\d+\])?|{_FIELDS}\$\..*",),
    "U-ARTIFACTS": (r"type \$(\[\d+\])?",),
    "U-SESSION-FIELDS": (_FIELDS + r"\$(\[\d+\])?\.(?!id$)\w+",),
    "U-SESSION-LIST": (r"type \$(\[\d+\])?|.* \$\[\d+\]\.events.*",),
    "U-SESSION-CREATE": (_CREATED, r".* \$\.(state|events).*"),
    "U-SESSION-DUPLICATE": (_ALL,),
    "U-SESSION-UNKNOWN": (_ALL,),
    "U-SESSION-DELETE": (_ALL,),
    "U-EVENT-FIELDS": (r".* " + _EVENT_FIELD,),
    "U-RUN-UNKNOWN-SESSION": (_ALL,),
    "U-RUN-UNKNOWN-APP": (_ALL,),
    "U-RUN-ERROR": (_ALL,),
    "U-RUN-SSE-ERROR": (r".* events.*",),
    "U-USER-SESSION-CHARS": (_STATUS,),
    "U-SIGNING": (_REFUSED,),
    "U-SIGNING-SKEW": (_REFUSED,),
    "U-GATEWAY-AUTH": (_REFUSED,),
    "U-TTL-DURING": (_ALL,),
    "U-TTL-AFTER": (_ALL,),
    "U-EXEC-SUCCESS": (r"value \$\.Result\.Result\.success",),
    "U-EXEC-TIMEOUT": (r".* \$\.Result\.Result\..*",),
    "U-EXEC-CONCURRENCY": (_ALL,),
    "U-EXECBASH-STATE": (r"value \$\.Result\.Result\.data\..*",),
    "U-KERNEL-NAMES": (_STATUS,),
    "U-ERROR-SHAPE": (_ALL,),
    "U-TOOL-SESSION-PAUSED": (r"value .*Status",),
    "U-TOOL-SESSION-ENDED": (_ALL,),
    "U-A2A-TASK": (_FIELDS + _ALL, r"value .*(\.(state|kind|role|version|protocolVersion))"),
    "U-A2A-EVENTS": (r".* events.*",),
    "U-MCP-UNAUTHORIZED": (_ALL,),
    "U-MCP-ARGUMENTS": (r".* (events\[\d+\])?\$\.(result|error).*",),
    "U-RUN-CONCURRENT": (_ALL,),
    "U-TTL-EXTENDS": (_ALL,),
    "U-TTL-REPEATED": (_ALL,),
    "U-TTL-PAUSED": (_ALL,),
    "U-TOOL-NAMES": (_STATUS,),
    "U-TOOL-TTL-UNIT": (r"value .*(Ttl|ExpireAt|ExpireTime).*",),
    "U-BROWSER-FORMAT": (r"value (content-type|\$)",),
    "U-BROWSER-SCROLL": (r"value \$",),
    "U-MCP-TOOLSET-TOOLS": (r".* \$\.result\.tools.*",),
}
# unknowns that only a special request shows, or no answer
NOTHING = frozenset(
    [
        *("U-ASYNC-TASK", "U-DEPRECATION", "U-EXEC-LIMITS", "U-GATEWAY-CREDENTIAL"),
        *("U-IDENTITY-HEADERS", "U-INVOKETOOL-WIRE", "U-LIMITS", "U-MCP-SERVICE-WIRE"),
        *("U-RUN-CODE-RETURN", "U-SANDBOX-PATHS", "U-SCALE-IDLE", "U-TOOL-CONTEXT"),
        *("U-USER-SESSION-ID", "U-WEBHOOKS"),
    ]
)
# the specification itself allows these differences: that section says "may be empty"
_LEFT_OPEN = {"section 2.8": r"value \$\.Result\.(Internal)?Endpoint"}


def unknowns() -> Collection[str]:
    """Return the unknowns whose effects are declared, including those without an effect."""
    return {*_ABOUT, *NOTHING}


def explained(
    differences: Iterable[Difference], relied_on: Collection[str]
) -> Iterator[Difference]:
    """Yield the differences, each with the unknown among ``relied_on`` that explains it."""
    for difference in differences:
        yield replace(difference, because=_reason(difference, relied_on))


def _reason(difference: Difference, relied_on: Collection[str]) -> str | None:
    subject = f"{difference.kind} {difference.path}"
    for section, pattern in _LEFT_OPEN.items():
        if re.fullmatch(pattern, subject) and "" in (difference.double, difference.live):
            return section
    if difference.path == "status":
        subject += f" {difference.double} {difference.live}"
    found = (one for one in sorted(relied_on) if _is_about(one, subject, difference))
    return next(found, None)


def _is_about(unknown: str, subject: str, difference: Difference) -> bool:
    if not any(re.fullmatch(pattern, subject) for pattern in _ABOUT.get(unknown, ())):
        return False
    inside = _INSIDE.get(unknown)
    if inside is None or difference.kind != "type":
        return True
    return bool(inside(difference.double) == inside(difference.live))


def _unwrapped(value: Any) -> Any:
    """Return the content of an envelope: the only field of an object or element of an array."""
    if isinstance(value, (dict, list)) and len(value) == 1:
        return next(iter(value.values() if isinstance(value, dict) else value))
    return value


def _names(value: Any) -> Any:
    """Return the names in a list of applications, whichever way they are listed."""
    if isinstance(value, dict):
        value = value.get("name", value.get("apps"))
    return [_names(one) for one in value] if isinstance(value, list) else value


# if only the envelope is open, its content must be the same
_INSIDE: Mapping[str, Callable[[Any], Any]] = {
    "U-INVOKE-ENVELOPE": _unwrapped,
    "U-INVOKE-SSE-CHUNK": _unwrapped,
    "U-LIST-APPS": _names,
}
