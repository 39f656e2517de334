"""Redaction: headers, queries and texts without the secrets that they have.

The name of a value says whether it is one, by its last words: ``X-Auth-Token``, ``db_password``,
``openai.apiKey``. What a name means depends on where it stands: ``key`` and ``code`` are secrets in
a query, and ordinary fields in data. Tokens that are counted, or mark a place, are never secrets.

Filters of log records redact them, and log mistakes of clients in one line, where libraries log a
traceback: it looks like a failure of the server, and makes the reader search for a reason.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from urllib.parse import parse_qsl, unquote, urlencode

REDACTED = "***"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FILLERS = ("value", "string", "header")  # after the word that says what a value is
_ORDINARY = re.compile(  # the squeezed ends of names that would otherwise say "secret"
    r"(?:(?:next|page|prev|previous|client|continuation|progress|sync|resume|cancel|cancellation|"
    r"idempotency|stop|eos|bos|pad|unk|sep|cls|mask|start|end|special|first|last)token"
    r"|(?:sort|primary|foreign|partition|public|idempotency|cache|object|row|group|websocket)key)$"
)
_SECRET = re.compile(  # the squeezed ends of names that say "secret" anywhere
    r"(?:token|secrets?|passwords?|passwd|passphrase|passcode|credentials?|jwt|bearer|authorization"
    r"|(?:api|access|secret|private|signing|signature|encryption|master|auth|subscription|account"
    r"|license|shared|service|functions?|admin|ssh|hmac|webhook|deploy|consumer|app|application"
    r"|client)keys?)$"
)
_SECRET_BESIDE_DATA = re.compile(r"(?:key|signature|hmac|cookie)$")  # in headers and queries
_SECRET_WORDS = frozenset({"sig", "auth", "pass", "pwd", "sas", "otp"})  # as ends of other words
_SECRET_CODES = frozenset({"code", "authcode", "authorizationcode", "devicecode", "codeverifier"})

_STRING = r'"(?:[^"\\]|\\.)*"?'
_WHOLE = r'"(?:[^"\\]|\\.)*"'  # where more must follow: only one way to match, so no search
_FIELD = re.compile(  # of JSON or Python, also inside strings, where quotes have backslashes
    r"""["']([^"'\\]{1,100})\\*["']\s*:\s*(\\*)(["'])"""
)
_BARE_FIELD = re.compile(
    rf'"([^"\\]{{1,100}})"\s*:\s*(\[(?:[^\]"{{\[]|{_WHOLE})*\]|-?\d[^\s,}}\]]*)'
)
_NAMED_BEFORE = re.compile(  # {"Key": "MODEL_API_KEY", "Value": "..."}, in either order
    rf'("(?:key|name)"\s*:\s*"([^"\\]{{1,100}})"\s*,\s*"value"\s*:\s*){_STRING}', re.IGNORECASE
)
_NAMED_AFTER = re.compile(
    r'("value"\s*:\s*)"(?:[^"\\]|\\.)*"(\s*,\s*"(?:key|name)"\s*:\s*"([^"\\]{1,100})")',
    re.IGNORECASE,
)
_LISTED_KEYS = re.compile(rf'"ApiKeys"\s*:\s*\[(?:[^\]"]|{_STRING})*')
_LISTED_KEY = re.compile(rf'("Key"\s*:\s*){_STRING}')
_PARAMETER = re.compile(  # of an address in a text, whose & may be escaped
    r"((?:[?&]|\\u0026|%26)([\w.~\[\]-]{1,100})(?:=|%3D))((?:(?!%26)[^&\"'\s\\#<>])+)",
    re.IGNORECASE,
)
_IN_PATH = re.compile(r"^(/jupyter/token/)[^/]+")
_USER_INFO = re.compile(r"(://[^\s/?#\"'\\@:]*:)[^\s/?#\"'\\]*(?=@)")
_FORM = re.compile(r"[\w.~%+*\[\]-]+=[^\s&\"]*(?:&[\w.~%+*\[\]-]+=[^\s&\"]*)*")
_SIGNED = "HMAC-SHA256 "


@lru_cache(maxsize=1000)
def is_secret_field(name: str) -> bool:
    """Return whether the name of a field of data says that its value is a secret."""
    words = _words(name)
    if len(words) == 1 and (name.isupper() or words == ["pass"]):  # PWD is a directory
        return _ends(_SECRET, words)
    return _ends(_SECRET, words) or (bool(words) and words[-1] in ("pass", "pwd"))


def is_secret_parameter(name: str) -> bool:
    """Return whether the name of a query parameter says that its value is a secret."""
    return _is_secret_beside_data(name) or "".join(_words(name)) in _SECRET_CODES


def is_secret_header(name: str) -> bool:
    """Return whether the name of a header says that its value is a secret."""
    return _is_secret_beside_data(name)


@lru_cache(maxsize=1000)
def _is_secret_beside_data(name: str) -> bool:
    words = _words(name)
    return bool(words) and (
        _ends(_SECRET, words) or _ends(_SECRET_BESIDE_DATA, words) or words[-1] in _SECRET_WORDS
    )


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name)]
    while len(words) > 1 and words[-1] in _FILLERS:
        words.pop()
    return words


def _ends(pattern: re.Pattern[str], words: list[str]) -> bool:
    squeezed = "".join(words)
    return bool(pattern.search(squeezed)) and not _ORDINARY.search(squeezed)


def hide_in_query(query: str, is_secret: Callable[[str], bool] = is_secret_parameter) -> str:
    """Return a query without the values of secret parameters, in whatever encoding."""
    if not query:
        return query
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(is_secret(name) for name, _ in pairs):
        return query
    hidden = [(name, REDACTED if is_secret(name) else value) for name, value in pairs]
    return urlencode(hidden, safe="*")


def hide_in_path(path: str) -> str:
    """Return a path without the token that follows a segment ``token``."""
    return _IN_PATH.sub(rf"\1{REDACTED}", path)


def without_secrets(text: str) -> str:
    """Return text without the secrets in its JSON, its forms and its addresses."""
    if _FORM.fullmatch(text):
        text = hide_in_query(text, is_secret_field)
    text = _USER_INFO.sub(rf"\1{REDACTED}", text)
    text = _PARAMETER.sub(_hidden_parameter, text)
    text = _BARE_FIELD.sub(_hidden_bare_field, _without_fields(text))
    text = _NAMED_BEFORE.sub(_hidden_after_name, text)
    text = _NAMED_AFTER.sub(_hidden_before_name, text)
    return _LISTED_KEYS.sub(lambda keys: _LISTED_KEY.sub(rf'\1"{REDACTED}"', keys[0]), text)


def _hidden_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}" if is_secret_parameter(unquote(match[2])) else match[0]


def _without_fields(text: str) -> str:
    parts, done = [], 0
    for field in _FIELD.finditer(text):
        name, backslashes, quote = field.groups()
        if field.start() >= done and is_secret_field(name):
            parts += [text[done : field.end()], REDACTED]
            # inside strings, quotes of the value have more backslashes than its own
            end = re.escape(backslashes) if backslashes else r"(?:\\\\)*"
            match = re.compile(rf"(?<!\\){end}{quote}").search(text, field.end())
            done = match.end() - len(backslashes) - 1 if match else len(text)
    return "".join([*parts, text[done:]])


def _hidden_bare_field(match: re.Match[str]) -> str:
    name, value = match.groups()
    if not is_secret_field(name) or (value[0] != "[" and name.lower().endswith("token")):
        return match[0]  # a number that is a token is a count
    hidden = re.sub(_STRING, f'"{REDACTED}"', value) if value[0] == "[" else f'"{REDACTED}"'
    return match[0].removesuffix(value) + hidden


def _hidden_after_name(match: re.Match[str]) -> str:
    return f'{match[1]}"{REDACTED}"' if _is_secret_beside_data(match[2]) else match[0]


def _hidden_before_name(match: re.Match[str]) -> str:
    return f'{match[1]}"{REDACTED}"{match[2]}' if _is_secret_beside_data(match[3]) else match[0]


def redact(name: str, value: str) -> str:
    """Return a header's value without its secret; ``name`` is lower-case."""
    if name in ("authorization", "proxy-authorization"):
        if value.startswith(_SIGNED) and "Signature=" in value:
            return re.sub(r"Signature=.*", f"Signature={REDACTED}", value, flags=re.S)
        scheme, _, rest = value.partition(" ")
        return f"{scheme} {REDACTED}" if rest else REDACTED
    return REDACTED if is_secret_header(name) else without_secrets(value)


LONGEST = 300  # characters of an error's message

_serving: ContextVar[bool] = ContextVar("agentdouble_serving", default=False)


@contextmanager
def serving() -> Iterator[None]:
    """Shorten the tracebacks logged inside, because they belong to a request to our server.

    The loggers belong to the process, and other code may serve with the same libraries.
    """
    token = _serving.set(True)
    try:
        yield
    finally:
        _serving.reset(token)


def tell_in_short(logger: str, *kinds: type[BaseException]) -> None:
    """Remove the traceback from what a library's logger logs about errors of these kinds."""
    logging.getLogger(logger).addFilter(_InShort(kinds))


def hide_secrets(logger: str) -> None:
    """Hide the secrets in what a logger logs of our server, such as passwords in addresses."""
    logging.getLogger(logger).addFilter(_without_secrets)


def printable(text: str) -> str:
    """Return the text on one line of a log, with unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _InShort(logging.Filter):
    def __init__(self, kinds: tuple[type[BaseException], ...]) -> None:
        super().__init__()
        self._kinds = kinds

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a record, if needed, and let it pass."""
        error = record.exc_info[1] if record.exc_info else None
        if _serving.get() and isinstance(error, self._kinds):
            message = printable(str(error)[:LONGEST])
            record.msg, record.args = (
                "%s: %s: %s",
                (record.getMessage(), type(error).__name__, message),
            )
            record.exc_info, record.exc_text = None, None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def _without_secrets(record: logging.LogRecord) -> bool:
    if _serving.get():
        record.msg, record.args = without_secrets(record.getMessage()), ()
        if record.exc_info:  # its message may have the address, too
            traceback = logging.Formatter().formatException(record.exc_info)
            record.exc_text = without_secrets(traceback)
    return True
