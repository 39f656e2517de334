"""Pieces of requests that are not what they should be."""

from __future__ import annotations

PIECES = (
    *("%00", "%0a", "%0d%0a", "%09", "%7f", "%1b", "%e2%80%ae", "%ff", "%c0%af", "%ed%a0%80"),
    *("%", "%zz", "%2", "%2e%2e", "..", ".", "%2f", "%5c", "~", "*", "x" * 3000, "%25", "+"),
    *("%f0%9f%99%82", "{id}", "a%3fb", "%23", "-1", "0", "9" * 400, "null", ":", "a:b", "@"),
)
QUERIES = (
    *("%", "%zz", "=", "&", "&&=&", "a", "a=%00", "a=%ff", "a=%ed%a0%80", "%ed%a0%80=1", "a=1;b=2"),
    *("a=" + "x" * 5000, "&".join(["a=1"] * 1500), "\xff", "a[]=1", "%00", "a=%f0%9f", "+=+"),
)
NUMBERS = ("-1", "0", "NaN", "inf", "1e400", "9" * 5000, "1_000", "١٢", "0x10", " 1", "%00", "")
NAMES = (
    *("limit", "after", "id", "wait", "tail", "since", "fired", "within_s", "detailed", "stream"),
    *("status", "path", "method", "format", "quality", "pageSize", "pageToken", "historyLength"),
    *("user_session_id", "tool_id", "version", "Action", "Version", "bodies", "action", "follow"),
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
MADE_UP = ("FOO", "get", "PROPFIND", "G\x00T", "X" * 300, "", "GET GET", "PRI", "QUERY", "é")
TYPES = (
    *("", "application/json", "application/json; charset=utf-16", "application/json;charset=x"),
    *("text/plain", "application/xml", "application/x-www-form-urlencoded", "x", "/", ";;;"),
    *("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=x"),
    *('multipart/form-data; boundary="', "multipart/form-data; boundary=" + "b" * 300, "é/ü"),
    *("application/x-ndjson", "application/octet-stream", "application/json\x00", "*/*"),
)
HEADERS = (
    *(
        "Accept: \xff",
        "Accept: ",
        "Accept: " + "a," * 2000,
        "X: \xe9\xff",
        "X-" + "y" * 3000 + ": 1",
    ),
    *("Authorization: Bearer", "Authorization: Bearer \xff", "Authorization: HMAC-SHA256 x"),
    *("Authorization: Basic ==", "Cookie: " + "c=1; " * 800, "Content-Encoding: gzip"),
    *("Content-Encoding: nonsense", "Expect: 100-continue", "Expect: nonsense", "TE: trailers"),
    *("Range: bytes=9-1", "If-Modified-Since: never", "Last-Event-ID: -1", "Last-Event-ID: \xff"),
    *("Mcp-Session-Id: \xff", "Mcp-Session-Id: " + "s" * 3000, "Mcp-Protocol-Version: 9"),
    *("A2A-Version: 9.9", "A2A-Version: \xff", "A2A-Extensions: ,,,", "user_id: \xff"),
    *("session_id: " + "s" * 3000, "X-Forwarded-Proto: x", "X-Forwarded-For: \xff, ::::"),
    *("X-Forwarded-Host: a b", "Forwarded: for=;;", "Content-Type: a", "Upgrade: h2c"),
    *("Connection: upgrade, close", "Connection: close, keep-alive", "Origin: null", "Origin: x"),
    *(
        "Host: other",
        "X-Agentdouble-Run: \xff",
        "traceparent: x",
        "baggage: %%%",
        "folded: a\r\n b",
    ),
    *("Bad Header: 1", "NoColon", ": empty", "a\x00b: 1", "X: a\x00b", "Date: \x7f"),
)
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)
BAD_UPGRADE = (
    "Sec-WebSocket-Key: x",
    "Sec-WebSocket-Key: \xff",
    "Sec-WebSocket-Version: 99",
    "Sec-WebSocket-Version: \xff",
    "Sec-WebSocket-Protocol: ,,\xff",
    "Sec-WebSocket-Protocol: a b",
    "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99",
    "Sec-WebSocket-Extensions: ;;",
    "Upgrade: nothing",
    "Content-Length: 5",
)
FRAMES = (
    *(b"\x81\x05hello", b"\xc1\x80\x00\x00\x00\x00", b"\x83\x80abcd", b"\x8f\x80abcd"),
    *(b"\x81\xff" + b"\xff" * 8 + b"abcd", b"\x89\xfe\x00\x80abcd" + b"x" * 128),
    *(b"\x09\x80abcd", b"\x80\x80abcd", b"\x88\x81abcdx", b"\x88\x82abcd\x00\x00"),
    *(b"\x81\x82\x00\x00\x00\x00\xc3\x28", b"\x01\x80abcd\x81\x80abcd", b"\x82\x80abcd"),
    *(b"\x81\x82\x00\x00\x00\x00{}", b"\x81\x84\x00\x00\x00\x00null", b"\x81", b"GET / HTTP/1.1"),
)
