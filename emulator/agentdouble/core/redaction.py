"""Redaction: headers, queries and texts without the secrets that they have.

A text can be JSON, a form, XML, code, a command or a prompt, each also inside a string of another.
``secret_names`` knows which names say "secret"; here are the ways in which a name and its value are
written. A value without quotes may be code (``token = read()``); it is hidden unless it looks like
code. Each pattern takes linear time, even for hostile text.

Filters of log records redact them, and log mistakes of clients in one line. Libraries log a
traceback for them, which looks like a failure of the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from agentdouble.core.secret_names import (
    is_secret_field,
    is_secret_header,
    is_secret_parameter,
    may_name_secret,
)

REDACTED = "***"
_PIECE = 64 * 1024  # characters, which take some milliseconds

_Q = r"""\\*["'`]"""  # inside a string, quotes have backslashes
_NAME = r"-{0,2}[A-Za-z_$][\w.$-]{0,99}"
_START = r"(?:(?<=\\[nrt])|(?<![\w.$\\-]))"  # of a name; inside a string, \n ends a line
_LINE_END = r"(?:\r?\n|(?:\\{1,9}r)?\\{1,9}n)"
_STRING = r'"(?:[^"\\]|\\.)*"?'
_WORD = r"""[^\s"'`\\,;&|<>(){}\[\]]"""  # a character of a value without quotes

_FORM = re.compile(r"[\w.~%+*\[\]-]+=[^\s&\"]*(?:&[\w.~%+*\[\]-]+=[^\s&\"]*)*")
_LOGIN = re.compile(r"(?:^|&)(?:grant_type|client_assertion|SAMLResponse)=")
_PARAMETER = re.compile(  # of an address in a text, whose & may be escaped
    r"((?:[?&]|\\u0026|%26)([\w.~\[\]-]{1,100})(?:=|%3D))((?:(?!%26)[^&\"'\s\\#<>])+)",
    re.IGNORECASE,
)
_IN_PATH = re.compile(r"^(/jupyter/token/)[^/]+")
_USER_INFO = re.compile(r"(://[^\s/?#\"'\\@:\[]*:)(?:[^\s/?#\"'\\]*|(?=\D)[^\s\"'\\]{1,200})(?=@)")
_QUOTED = re.compile(  # a name, and the start of its value in quotes
    rf"""(?:
        ["'](?:key|name){_Q}\s*:\s*{_Q}(?P<named>[^"'`\\\n]{{1,100}}){_Q}\s*,\s*{_Q}value{_Q}\s*:
        |["'`](?P<field>[^"'`\\\n]{{1,100}}){_Q}\s*(?:\]\s*=|:|=>)
        |\(\s*{_Q}(?P<argument>[\w.-]{{1,100}}){_Q}\s*,
        |\bkey=\\*"(?P<added>[^"\\\n]{{1,100}})\\*"\s+value=
        |{_START}(?P<variable>{_NAME})\s*(?::\s*[\w.|\[\]]{{1,40}}\s*=|[:=!]?==?|=>|:)
    )\s*[A-Za-z]{{0,2}}(?P<escapes>\\*)(?P<quote>["'`])(?P<triple>(?:(?P=escapes)(?P=quote)){{2}})?""",
    re.VERBOSE | re.IGNORECASE,
)
_SETS = re.compile(r"(?:set|put|add|append|header|insert|default)\w{0,20}$", re.IGNORECASE)
_BARE_FIELD = re.compile(
    r'"([^"\\]{1,100})\\*"\s*:\s*(\[(?:[^\]"{\[]|"(?:[^"\\]|\\.)*")*\]|-?\d[^\s,}\]]*)'
)
_BARE = re.compile(  # a name and its value of a command, an .env or INI file, or a header
    rf"{_START}({_NAME})(=|:[ \t]*|[ \t]+=[ \t]*)((?![$=]){_WORD}+)"
)
_NAMED_AFTER = (  # {"Value": "...", "Key": "MODEL_API_KEY"}
    re.compile(
        r'((?<!\\)"value"\s*:\s*")(?:[^"\\]|\\.)*("\s*,\s*"(?:key|name)"\s*:\s*"([^"\\]{1,100})")',
        re.IGNORECASE,
    ),
    re.compile(  # inside a string
        r'(\\"value\\+"\s*:\s*\\+")[^"\\]*(\\+"\s*,\s*\\+"(?:key|name)\\+"\s*:\s*\\+"([^"\\]{1,100})\\+")',
        re.IGNORECASE,
    ),
)
_NAMED_IN_YAML = re.compile(
    rf"""(\bname:[ \t]*{_Q}?([\w.-]{{1,100}})(?:{_Q})?{_LINE_END}[ \t]*value:[ \t]*(?:{_Q})?)([^\r\n"'`\\]+)"""
)
_LISTED_KEYS = re.compile(rf'"ApiKeys"\s*:\s*\[(?:[^\]"]|{_STRING})*')
_LISTED_KEY = re.compile(rf'("Key"\s*:\s*){_STRING}')
_PART = re.compile(  # of a multipart body
    rf"""(form-data;[ \t]*name=\\*"?([^"\\\r\n;]{{1,100}})[^\r\n]{{0,300}}?
    (?:{_LINE_END}[\w-]{{1,60}}:[^\r\n\\]{{0,300}}){{0,5}}{_LINE_END}{_LINE_END})
    ((?:(?!{_LINE_END}--).)*)""",
    re.VERBOSE | re.DOTALL,
)
_ELEMENT = re.compile(
    r"(<([\w:.-]{1,100})(\s[^<>]{0,300})?>)"
    r"(<!\[CDATA\[(?:(?!\]\]>).){0,2000}\]\]>|[^<>]+)(?=<\\?/)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""\b(?:name|key|id)=\\*["']([^"'\\]+)""")
_OPTION = re.compile(  # --token VALUE, or "--token", "VALUE"
    rf"""((?<![\w-])--?([A-Za-z][\w-]{{0,60}})(?:(?:{_Q}\s*,\s*|[ \t]+)(\\*["'])|[ \t]+))"""
    rf"""((?(3)[^"'\\]+|(?![$-]){_WORD}+))"""
)
_USER = re.compile(  # curl -u name:password
    rf"""((?<![\w-])(?:-u|-U|--user|--proxy-user)(?:{_Q}\s*,\s*|[ =]*)(?:{_Q})?[^\s:"'`\\+/]{{0,100}}:)"""
    r"""(?!\d+\b)(?![/$])[^\s"'`\\]+"""
)
_STATEMENT = re.compile(rf"(\b(?:password|identified by)\s+{_Q})[^\"'`\\]+", re.IGNORECASE)
_COOKIE = re.compile(r"""(\bcookie:[ \t]*)[\w.-]{1,100}=[^\r\n"'`\\]*""", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"""(\bauthorization:[ \t]*(?:bearer|basic|token|apikey)[ \t]+)[^\s"'`\\$<{,;]+""",
    re.IGNORECASE,
)
_SCHEME = re.compile(
    r"\b((?:[Bb]earer|BEARER|Basic) +)(?=[\w~+/=-]{0,99}[\d_.]|[\w~+/=-]{20})[\w.~+/=-]{6,}"
)
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----)[^-]+")
_FORMATS = re.compile(  # the forms that are secrets, whatever their names
    r"(?<![\w-])(?:eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*"
    r"|[sr]k[-_](?=[\w-]{0,99}\d)[\w-]{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|hf_\w{16,}"
    r"|glpat-[\w-]{16,}|xox[a-z]-[\w-]{8,}|AIza[\w-]{30,})"
)
# One of them is in the lower-case form of a secret that no name announces, or of an encoded name.
_MARKS = (
    "://",
    "%",
    "eyj",
    "sk-",
    "sk_",
    "rk-",
    "rk_",
    "gh",
    "hf_",
    "glpat",
    "xox",
    "aiza",
    " -u",
    "identified",
)
_SIGN_IN = re.compile(  # auth=("ann", "..."), HTTPBasicAuth("ann", "...")
    rf"""((?:{_START}auth\s{{0,9}}=\s{{0,9}}|(?:Basic|Digest)Auth)\(\s{{0,9}}{_Q}[^"'\\]{{0,100}}{_Q}\s{{0,9}},\s{{0,9}}{_Q})"""
    r"""[^"'`\\{$<]+(?=\\*["'])"""
)
_HIDDEN_AFTER = (_SIGN_IN, _STATEMENT, _COOKIE, _AUTHORIZATION, _SCHEME, _PRIVATE_KEY, _USER)

_PLACEHOLDER = re.compile(
    r"[)\],;]|(?:\$\{.*|\$[A-Z][A-Z0-9_]*|\{[\w.]+\}|<[\w -]+>|include|omit|same-origin|)$"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$")
_WORDS = re.compile(
    r"[A-Za-z_.?!*/-]*$|(?:u?int|float|bytes|[uif])\d+$|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$"
)
_AT_LINE_END = re.compile(rf"""[ \t]*(?:$|{_LINE_END}|\\*["'`])""")
_SIGNED = "HMAC-SHA256 "
_TOKEN_FOLLOWS = re.compile(r"\b(?:\w*token|bearer|auth\w*|jwt|secret|\w*key)\b", re.IGNORECASE)


def hide_in_query(query: str, is_secret: Callable[[str], bool] = is_secret_parameter) -> str:
    """Return a query without the values of secret parameters, in whatever encoding."""
    if not query:
        return query
    pairs = parse_qsl(query, keep_blank_values=True)
    hidden = [
        (name, REDACTED if is_secret(name) else _FORMATS.sub(REDACTED, value))
        for name, value in pairs
    ]
    return query if hidden == pairs else urlencode(hidden, safe="*")


def hide_in_path(path: str) -> str:
    """Return a path without the token that follows a segment ``token``, or looks like one."""
    return _FORMATS.sub(REDACTED, _IN_PATH.sub(rf"\1{REDACTED}", path))


def without_secrets(text: str) -> str:
    """Return text without the secrets in its data, its code, its commands and its addresses."""
    lower = text.lower()
    if not may_name_secret(lower) and not any(mark in lower for mark in _MARKS):
        return text
    if _FORM.fullmatch(text):
        is_login = _LOGIN.search(text)
        text = hide_in_query(text, is_secret_parameter if is_login else is_secret_field)
    text = _USER_INFO.sub(rf"\1{REDACTED}", text)
    text = _PARAMETER.sub(_hidden_parameter, text)
    for pattern in _NAMED_AFTER:
        text = pattern.sub(_hidden_before_name, text)
    text = _LISTED_KEYS.sub(lambda keys: _LISTED_KEY.sub(rf'\1"{REDACTED}"', keys[0]), text)
    text = _BARE_FIELD.sub(_hidden_bare_field, _without_quoted(text))
    text = _PART.sub(_hidden_after_field, text)
    text = _NAMED_IN_YAML.sub(_hidden_after_field, text)
    text = _ELEMENT.sub(_hidden_element, text)
    text = _OPTION.sub(_hidden_after_field, text)
    for pattern in _HIDDEN_AFTER:
        text = pattern.sub(rf"\1{REDACTED}", text)
    text = _BARE.sub(_hidden_bare, text)
    return _FORMATS.sub(REDACTED, text)


def without_secrets_inside(value: Any) -> Any:
    """Return a value of JSON without the secrets in its fields and texts, whatever its size.

    Raises RecursionError for a value that is nested too deeply.
    """
    if isinstance(value, str):
        return "".join(map(without_secrets, _pieces(value)))
    if isinstance(value, list):
        return [without_secrets_inside(item) for item in value]
    if not isinstance(value, dict):
        return value
    lower = {name.lower(): item for name, item in value.items()}
    named = lower.get("key") or lower.get("name")
    is_named = isinstance(named, str) and is_secret_header(named)
    return {
        name: _hidden_field(
            item, is_secret_field(name) or (is_named and name.lower() == "value"), name
        )
        for name, item in value.items()
    }


def _hidden_field(value: Any, is_secret: bool, name: str) -> Any:
    if not is_secret or value is None or isinstance(value, (bool, dict)):
        return without_secrets_inside(value)
    if isinstance(value, list):
        return [_hidden_field(item, is_secret, name) for item in value]
    is_count = not isinstance(value, str) and name.lower().endswith("token")
    return value if is_count else REDACTED


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text, whole lines if they are short: a search stops all threads."""
    start = 0
    while len(text) - start > _PIECE:
        end = text.rfind("\n", start, start + _PIECE) + 1 or start + _PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def _hidden_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}" if is_secret_parameter(unquote(match[2])) else match[0]


def _without_quoted(text: str) -> str:
    parts, done = [], 0
    start = _QUOTED.search(text)
    while start is not None:
        at = start.end()
        if _names_secret(start):
            end = _value_end(start, text)
            if not (start["variable"] and _is_ordinary(start["variable"], text[at:end])):
                parts += [text[done:at], REDACTED]
                done = at = end
        start = _QUOTED.search(text, at)
    return "".join([*parts, text[done:]])


def _value_end(start: re.Match[str], text: str) -> int:
    escapes, quote = start["escapes"], start["quote"]
    # inside strings, quotes of the value have more backslashes than its own
    closing = re.escape(escapes) + quote if escapes else rf"(?:\\\\)*{quote}"
    if start["triple"]:
        closing = f"(?:{re.escape(escapes)}{quote}){{3}}"
    elif start["variable"] and quote != "`":  # code; prose may have an apostrophe
        closing += rf"|{re.escape(escapes)}n" if escapes else r"|\n"
    if escapes:  # the surrounding string may end first
        closing += rf"|\\{{0,{len(escapes) - 1}}}\""
    match = re.compile(rf"(?<!\\)(?:{closing})").search(text, start.end())
    if match is None:
        return len(text)
    is_closed = match[0].endswith(escapes + quote)
    return match.end() - len(escapes) - 1 if is_closed else match.start()


def _names_secret(start: re.Match[str]) -> bool:
    if name := start["named"] or start["added"]:
        return is_secret_header(name)
    if name := start["argument"]:
        return is_secret_field(name) and bool(
            _SETS.search(start.string[max(0, start.start() - 40) : start.start()])
        )
    return is_secret_field(start["field"] or start["variable"].rpartition(".")[2])


def _is_ordinary(variable: str, value: str) -> bool:
    """Return whether a value of code is no secret: a parser has tokens, too."""
    may_be_part = variable.lower().endswith("token") or variable == "KEY"
    return bool(_PLACEHOLDER.match(value)) or (may_be_part and not _is_long(value))


def _is_long(value: str) -> bool:
    return " " not in value and (len(value) >= 10 or any(c.isdigit() for c in value))


def _hidden_bare_field(match: re.Match[str]) -> str:
    name, value = match.groups()
    if not is_secret_field(name) or (value[0] != "[" and name.lower().endswith(("token", "pass"))):
        return match[0]  # the value is a number of tokens, or of tests that pass
    hidden = re.sub(_STRING, f'"{REDACTED}"', value) if value[0] == "[" else f'"{REDACTED}"'
    return match[0].removesuffix(value) + hidden


def _hidden_before_name(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}{match[2]}" if is_secret_header(match[3]) else match[0]


def _hidden_after_field(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}" if is_secret_field(match[2]) else match[0]


def _hidden_element(match: re.Match[str]) -> str:
    start, name, attributes, value = match.groups()
    names = [name.rpartition(":")[2], *_ATTRIBUTE.findall(attributes or "")]
    return start + REDACTED if value.strip() and any(map(is_secret_field, names)) else match[0]


def _hidden_bare(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{REDACTED}" if _says_secret(match) else match[0]


def _says_secret(match: re.Match[str]) -> bool:
    name, sign, value = match.groups()
    name, text, end = name.rpartition(".")[2], match.string, match.end()
    if not is_secret_field(name) or text[end : end + 1] in tuple("([{"):
        return False
    if name.lower().endswith("token") and value.isdigit():
        return False
    if sign == "=":  # of an argument, or of a variable in a shell
        is_argument = text[end : end + 1] in tuple(",)") and _IDENTIFIER.match(value)
        return not is_argument and value.rpartition(".")[2].lower() != name.lower()
    if sign[0] == ":" and "-" in name:
        return True
    return not _WORDS.match(value) and (sign[0] == ":" or bool(_AT_LINE_END.match(text, end)))


def redact(name: str, value: str) -> str:
    """Return a header's value without its secret; ``name`` is lower-case."""
    if name in ("authorization", "proxy-authorization", "authentication"):
        if value.startswith(_SIGNED) and "Signature=" in value:
            return re.sub(r"Signature=.*", f"Signature={REDACTED}", value, flags=re.S)
        scheme, _, rest = value.partition(" ")
        return f"{scheme} {REDACTED}" if rest else REDACTED
    if name == "sec-websocket-protocol":
        return _hide_in_protocols(value)
    return REDACTED if is_secret_header(name) else without_secrets(value)


def _is_random(text: str) -> bool:
    return len(text) >= 16 and any(c.isdigit() for c in text)


def _hide_in_protocols(value: str) -> str:
    """Hide tokens among a WebSocket's protocols, the only header in which a page can send one."""
    shown, follows = [], False
    for protocol in value.split(","):
        is_secret = follows or any(map(_is_random, protocol.split(".")))
        follows = follows or _TOKEN_FOLLOWS.search(protocol) is not None
        shown.append(REDACTED if is_secret or follows else protocol.strip())
    return ", ".join(shown)
