"""Malformed requests as bytes: which part of a good one is spoiled is left to chance."""

from __future__ import annotations

import base64
import random
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.stress.malformed.bodies import malformed
from tests.stress.malformed.pieces import (
    BAD_UPGRADE,
    FRAMES,
    HEADERS,
    MADE_UP,
    METHODS,
    NAMES,
    NUMBERS,
    PIECES,
    QUERIES,
    TYPES,
    UPGRADE,
)
from tests.stress.malformed.target import Target, document_bytes


@dataclass
class Made:
    """A request as bytes; ``ends`` where nothing follows, ``unfinished`` where more is promised."""

    kind: str
    data: bytes = b""
    ends: bool = False
    unfinished: bool = False


@dataclass
class Draft:
    """A request in the making."""

    method: str
    path: str
    query: str
    headers: list[str] = field(default_factory=list)
    body: bytes = b""
    length: bool = True
    tail: bytes = b""

    def to_bytes(self) -> bytes:
        """Return the request as it is sent."""
        target = self.path + (f"?{self.query}" if self.query else "")
        lines = [f"{self.method} {target} HTTP/1.1", *self.headers]
        if self.length:
            lines.append(f"Content-Length: {len(self.body)}")
        head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
        return head + self.body + self.tail


def make(target: Target, host: str, chance: random.Random) -> Made:
    """Return a request to a route with something wrong in it."""
    draft = _good(target, host, chance)
    if target.websocket and chance.random() < 0.8:
        return _websocket(draft, chance)
    spoil = chance.choice(_SPOILERS)
    made = Made(spoil.__name__.strip("_"))
    spoil(draft, target, chance, made)
    made.data = made.data or draft.to_bytes()
    return made


def _good(target: Target, host: str, chance: random.Random) -> Draft:
    def fill(found: re.Match[str]) -> str:
        known = target.parameters.get(found[1], ())
        return chance.choice(known) if known else "x"

    path = re.sub(r"\{(\w+)(?::\w+)?\}", fill, target.path)
    method = chance.choice(list(target.methods) or ["GET"])
    headers = [f"Host: {host}", *(f"{name}: {value}" for name, value in target.headers.items())]
    body = b"" if method in ("GET", "HEAD") else document_bytes(chance.choice(target.documents))
    return Draft(method, path, target.query_string, headers, body)


def _body(draft: Draft, target: Target, chance: random.Random, _made: Made) -> None:
    draft.body = malformed(chance.choice(target.documents), chance)


def _content_type(draft: Draft, target: Target, chance: random.Random, _made: Made) -> None:
    draft.headers = [h for h in draft.headers if not h.lower().startswith("content-type")]
    draft.headers += [f"Content-Type: {chance.choice(TYPES)}"]
    if chance.random() < 0.5:
        draft.body = malformed(chance.choice(target.documents), chance)


def _path(draft: Draft, target: Target, chance: random.Random, _made: Made) -> None:
    holes = re.findall(r"\{\w+(?::\w+)?\}", target.path)
    if holes and chance.random() < 0.8:
        draft.path = target.path
        for hole in holes:
            draft.path = draft.path.replace(hole, chance.choice(PIECES), 1)
        return
    pieces = draft.path.split("/")
    pieces[chance.randrange(len(pieces))] = chance.choice(PIECES)
    draft.path = chance.choice(
        ("/".join(pieces), draft.path + "/", "/" + draft.path, draft.path + chance.choice(PIECES))
    )


def _query(draft: Draft, _target: Target, chance: random.Random, _made: Made) -> None:
    if chance.random() < 0.5:
        broken = chance.choice(QUERIES)
    else:
        broken = f"{chance.choice(NAMES)}={chance.choice((*NUMBERS, *PIECES))}"
    draft.query = f"{draft.query}&{broken}" if draft.query and chance.random() < 0.7 else broken


def _query_value(draft: Draft, target: Target, chance: random.Random, made: Made) -> None:
    """Spoil the value of a parameter that the route does know."""
    if not target.query:
        _query(draft, target, chance, made)
        return
    name = chance.choice(list(target.query))
    others = [f"{k}={quote(v)}" for k, v in target.query.items() if k != name]
    draft.query = "&".join([*others, f"{name}={chance.choice((*NUMBERS, *PIECES))}"])


def _header(draft: Draft, _target: Target, chance: random.Random, _made: Made) -> None:
    for _ in range(chance.choice((1, 1, 2, 3))):
        draft.headers.append(chance.choice(HEADERS))


def _host(draft: Draft, _target: Target, chance: random.Random, _made: Made) -> None:
    kept, others = draft.headers[0], draft.headers[1:]
    hosts: list[list[str]] = [
        [],
        [kept, kept],
        [kept, "Host: other"],
        ["Host:"],
        ["Host: user@127.0.0.1"],
        ["Host: 127.0.0.1:x"],
        ["Host: 127.0.0.1/a"],
        ["Host: \xff"],
        ["Host: [::1"],
        ["Host: 127.0.0.1:99999999"],
        ["Host: " + "h" * 2000],
    ]
    draft.headers = [*chance.choice(hosts), *others]
    if chance.random() < 0.3:
        form = chance.choice(("http://other/", "http://127.0.0.1:1/", "x://y", "//", "*", "a:1"))
        draft.path = form


def _method(draft: Draft, target: Target, chance: random.Random, _made: Made) -> None:
    others = [one for one in METHODS if one not in target.methods]
    draft.method = chance.choice((*others, *MADE_UP))
    if draft.method in ("GET", "HEAD"):
        draft.body = b""


def _framing(draft: Draft, _target: Target, chance: random.Random, made: Made) -> None:
    """Say something else about the length of the body than what comes."""
    draft.length, made.ends, made.unfinished = False, True, True
    size, body = len(draft.body), draft.body
    says = chance.choice(
        (
            [f"Content-Length: {size + 10}"],
            [f"Content-Length: {max(0, size - 1)}"],
            ["Content-Length: -1"],
            ["Content-Length: x"],
            ["Content-Length: " + "9" * 30],
            ["Content-Length: " + "9" * 5000],
            ["Content-Length: +5"],
            ["Content-Length: \xb2"],
            [f"Content-Length: {size}", f"Content-Length: {size + 1}"],
            [f"Content-Length: {size}", "Transfer-Encoding: chunked"],
            ["Transfer-Encoding: chunked, chunked"],
            ["Transfer-Encoding: gzip, chunked"],
            ["Transfer-Encoding: nonsense"],
            ["Transfer-Encoding: chunked"],
            [],
        )
    )
    draft.headers += says
    if any("chunked" in one for one in says):
        draft.body = chance.choice(
            (
                b"%x\r\n%s\r\n0\r\n\r\n" % (size, body),
                b"%x\r\n%s\r\n" % (size, body),
                b"%x;a=b\r\n%s\r\n0\r\nTrailer: x\r\n\r\n" % (size, body),
                b"zz\r\n%s\r\n0\r\n\r\n" % body,
                b"ffffffffffffffffffff\r\n%s" % body,
                b"-1\r\n\r\n",
                b"%x\n%s\n0\n\n" % (size, body),
                body,
            )
        )


def _encoded(draft: Draft, _target: Target, chance: random.Random, _made: Made) -> None:
    encoding = chance.choice(("gzip", "deflate", "br", "identity", "gzip, gzip", ""))
    draft.headers.append(f"Content-Encoding: {encoding}")
    draft.body = chance.choice((zlib.compress(draft.body), draft.body, b"\x1f\x8b\x08\x00"))


def _multipart(draft: Draft, _target: Target, chance: random.Random, _made: Made) -> None:
    draft.headers = [h for h in draft.headers if not h.lower().startswith("content-type")]
    draft.headers.append("Content-Type: multipart/form-data; boundary=frontier")
    if draft.method in ("GET", "HEAD"):
        draft.method = "POST"
    part = b'--frontier\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'
    draft.body = chance.choice(
        (
            part,
            part[: chance.randrange(len(part))],
            part + b"--frontier--",
            part + b"--frontier--\r\n",
            part.replace(b"\r\n", b"\n") + b"--frontier--\r\n",
            part.replace(b"frontier", b"elsewhere") + b"--elsewhere--\r\n",
            part.replace(b'name="file"; ', b"") + b"--frontier--\r\n",
            part.replace(b'filename="a"', b'filename="\xff\x00"') + b"--frontier--\r\n",
            part.replace(b"Content-Disposition", b"\xff\xfe") + b"--frontier--\r\n",
            part.replace(b"form-data", b"nothing") + b"--frontier--\r\n",
            part * 1100 + b"--frontier--\r\n",
            b"--frontier--\r\n",
            b'--frontier\r\nContent-Disposition: form-data; name="path"\r\n\r\n\xff\r\n'
            + part
            + b"--frontier--\r\n",
            b'--frontier\r\nContent-Disposition: form-data; name="path"\r\n\r\n/\x00\r\n'
            + part
            + b"--frontier--\r\n",
            b"--frontier\r\n" + b"X: y\r\n" * 200 + b"\r\nx\r\n--frontier--\r\n",
            b"",
        )
    )


def _upgrade(draft: Draft, _target: Target, chance: random.Random, made: Made) -> None:
    """Ask to speak WebSockets where nobody does."""
    draft.headers += UPGRADE
    draft.tail = chance.choice((b"", *FRAMES))
    made.ends = chance.random() < 0.5
    made.unfinished = made.ends


def _websocket(draft: Draft, chance: random.Random) -> Made:
    draft.method, draft.body, draft.length = "GET", b"", False
    made = Made("websocket", ends=True, unfinished=True)
    what = chance.randrange(3)
    if what == 0:
        draft.headers += [*UPGRADE[: chance.randrange(4)], chance.choice(BAD_UPGRADE)]
    else:
        draft.headers += UPGRADE
        draft.tail = b"".join(chance.choices(FRAMES, k=what))
    made.data = draft.to_bytes()
    return made


def _nonsense(draft: Draft, _target: Target, chance: random.Random, made: Made) -> None:
    """Send what is no request at all."""
    good = bytearray(draft.to_bytes())
    for _ in range(chance.randint(1, 6)):
        good[chance.randrange(len(good))] = chance.randrange(256)
    made.data = chance.choice(
        (
            bytes(good),
            bytes(good[: chance.randrange(len(good))]),
            base64.b64encode(bytes(good)),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET / HTTP/0.9\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /\r\n\r\n",
            b"\r\n\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        )
    )
    made.ends = made.unfinished = True


_SPOILERS: tuple[Callable[[Draft, Target, random.Random, Made], None], ...] = (
    *(_body, _body, _body, _body),
    *(_path, _path, _query, _query_value, _header, _host, _method),
    *(_content_type, _framing, _encoded, _multipart, _upgrade, _nonsense),
)
