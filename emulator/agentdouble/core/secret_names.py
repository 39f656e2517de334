"""Which names say that a value is a secret.

The last words of a name say it: ``X-Auth-Token``, ``db_password``, ``openai.apiKey``. What a name
means depends on where it stands: ``key`` and ``code`` are secrets in a query, and ordinary fields
in data. Tokens that are counted, or mark a place, are never secrets.
"""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FILLERS = frozenset(  # may follow the word that says what a value is
    {"value", "string", "header", "text", "plain", "raw", "encoded", "confirm", "confirmation"}
    | {"again", "old", "new", "current", "prod", "production", "staging", "dev", "test", "live"}
)
_ORDINARY = re.compile(  # the squeezed ends of names that would otherwise say "secret"
    r"(?:(?:next|page|prev|previous|client|continuation|progress|sync|resume|cancel|cancellation|"
    r"idempotency|stop|eos|bos|pad|unk|sep|cls|mask|start|end|special|first|last)token"
    r"|(?:sort|primary|foreign|partition|public|idempotency|cache|object|row|group|websocket)key"
    r"|allowcredentials)$"
)
_SECRET = re.compile(  # the squeezed ends of names that say "secret" wherever they stand
    r"(?:token|secrets?|passwords?|passwd|passphrase|passcode|credentials?|jwt|bearer|authorization"
    r"|clientassertion|samlresponse|cookies?|connectionstring|connstr|dsn"
    r"|(?:api|access|secret|private|signing|signature|encryption|master|auth|subscription|account"
    r"|license|shared|service|functions?|admin|ssh|hmac|webhook|deploy|consumer|app|application"
    r"|client)keys?"
    r"|(?:database|db|redis|mongo|mongodb|postgres|postgresql|mysql|amqp|broker|connection|webhook)"
    r"(?:url|uri))$"
)
_SECRET_BESIDE_DATA = re.compile(  # in headers, queries and the environment
    r"(?:key|signature|hmac|authentication|assertion)$"
)
_SECRET_WORDS = frozenset({"sig", "auth", "pass", "pwd", "sas", "otp"})  # as ends of other words
_SECRET_CODES = frozenset({"code", "authcode", "authorizationcode", "devicecode", "codeverifier"})
_IDENTITIES = frozenset({"assertion", "cookie", "jwt", "oidc", "saml", "secret", "token"})
_ABOUT = frozenset(  # the last words of headers that only describe an identity
    {"age", "algorithm", "at", "count", "expires", "expiry", "id", "identity", "in", "issuer"}
    | {"length", "limit", "method", "name", "on", "remaining", "status", "ttl", "type", "url"}
)
_HINTS = (  # the lower-case form of each name above contains one of these
    *("token", "secret", "pass", "pwd", "credential", "jwt", "bearer", "basic", "auth", "key"),
    *("cookie", "assertion", "saml", "oidc", "url", "uri", "dsn", "conn", "sig", "hmac", "sas"),
    *("otp", "code="),  # "code" alone names a secret only in a query
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


def may_name_secret(lower_text: str) -> bool:
    """Return whether a lower-case text may contain a name that says "secret"; most do not."""
    return any(hint in lower_text for hint in _HINTS)


@lru_cache(maxsize=1000)
def is_secret_field(name: str) -> bool:
    """Return whether the name of a field of data says that its value is a secret."""
    words = _words(name)
    if len(words) == 1 and name.isupper():  # PWD is a directory
        return name == "KEY" or _ends(_SECRET, words)
    if "-" in name and is_secret_header(name):
        return True
    if _VARIABLE.fullmatch(name) and _is_secret_beside_data(name):
        return True
    return _ends(_SECRET, words) or (bool(words) and words[-1] in ("pass", "pwd"))


def is_secret_parameter(name: str) -> bool:
    """Return whether the name of a query parameter says that its value is a secret."""
    return _is_secret_beside_data(name) or "".join(_words(name)) in _SECRET_CODES


@lru_cache(maxsize=1000)
def is_secret_header(name: str) -> bool:
    """Return whether the name of a header says that its value is a secret."""
    words = _words(name)
    says_who = not _IDENTITIES.isdisjoint(words) and words[-1] not in _ABOUT
    return _is_secret_beside_data(name) or (says_who and not _ends(_ORDINARY, words))


@lru_cache(maxsize=1000)
def _is_secret_beside_data(name: str) -> bool:
    words = _words(name)
    return bool(words) and (
        _ends(_SECRET, words) or _ends(_SECRET_BESIDE_DATA, words) or words[-1] in _SECRET_WORDS
    )


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name)]
    while len(words) > 1 and words[-1] in _FILLERS and words[-2] != "connection":
        words.pop()
    return words


def _ends(pattern: re.Pattern[str], words: list[str]) -> bool:
    squeezed = "".join(words)
    return bool(pattern.search(squeezed)) and not _ORDINARY.search(squeezed)
