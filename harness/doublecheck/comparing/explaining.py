"""Which differences an unknown explains: those in what it leaves open, and no others.

The double's answer names the unknowns that it relied on. An unknown explains a difference if
the answer relied on it and if what differs is what it is about: that the signing scheme is not
known says nothing of an output's text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from doublecheck.comparing.differences import Difference

_ALL = r".*"
_STATUS = r"value status .*"
_REFUSED = r"value status \d+ 40[13]"
_FIELDS = r"(only double|only live|type) "
_EVENT_FIELD = r"(\$|events|\$\.events)\[\d+\](\$)?\.(?!content\b|error\b).*"

# what each unknown is about, as regular expressions over "kind path" (and both statuses)
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
    "U-SESSION-CREATE": (_STATUS, r".* \$\.(state|events).*"),
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
    "U-MCP-TOOLSET-TOOLS": (r".* \$\.result\.tools.*",),
}
# what the specification itself lets differ: that section says "may be empty"
_LEFT_OPEN = {"section 2.8": r"value \$\.Result\.(Internal)?Endpoint"}


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
    found = (one for one in sorted(relied_on) if _is_about(one, subject))
    return next(found, None)


def _is_about(unknown: str, subject: str) -> bool:
    return any(re.fullmatch(pattern, subject) for pattern in _ABOUT.get(unknown, ()))
