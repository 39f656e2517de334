"""Call every operation of published definitions: ``python -m tests.real_definitions FOLDER``."""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import datetime
import io
import json
import logging
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio
import mcp
from openapi_core import OpenAPI
from openapi_core.configurations import Config
from openapi_core.datatypes import RequestParameters
from querystring_parser import parser as querystring_parser
from werkzeug.datastructures import Headers, ImmutableMultiDict
from werkzeug.formparser import parse_form_data

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi.definition import DefinedOperation
from tests.real_definitions.samples import Sampler

Json = dict[str, Any]

NAMES = (
    *("stripe.com", "github.com/api.github.com", "slack.com", "notion.com", "digitalocean.com"),
    *("box.com", "asana.com", "trello.com", "zoom.us", "openai.com", "linode.com", "netlify.com"),
    *("vercel.com", "xero.com/xero_accounting", "adyen.com/CheckoutService", "docusign.net"),
    *("gitlab.com", "telegram.org", "twilio.com/api", "kubernetes.io", "stream-io-api.com"),
    *("cpy.re/peertube", "spotify.com", "plaid.com"),
)
_NOT_JUDGED = ("default", "pattern", "format", "readOnly")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass
class Received:
    """A request as received, in the form that openapi-core reads."""

    host_url: str
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes | None
    parameters: RequestParameters = field(init=False)

    def __post_init__(self) -> None:
        cookies = [part.partition("=") for part in self.headers.get("cookie", "").split("; ")]
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(parse_qsl(self.query, keep_blank_values=True)),
            header=Headers(list(self.headers.items())),
            cookie=ImmutableMultiDict(
                [(name, unquote(value)) for name, _, value in cookies if name]
            ),
        )

    @property
    def content_type(self) -> str:
        """The media type of the body, with its parameters."""
        return self.headers.get("content-type", "")


@contextlib.contextmanager
def recording() -> Iterator[tuple[str, list[Received]]]:
    """Serve an API that answers everything; yield its address and its requests."""
    received: list[Received] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            parts = urlsplit(self.path)
            path = unquote(parts.path.replace("%2F", "%252F"))
            headers = {
                name.lower(): value.encode("latin-1").decode()  # values are sent in UTF-8
                for name, value in self.headers.items()
            }
            body = self.rfile.read(length) if length else None
            received.append(Received(url, self.command.lower(), path, parts.query, headers, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    for method in METHODS:
        setattr(Handler, f"do_{method.upper()}", Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield url, received
    finally:
        server.shutdown()
        server.server_close()


def located(document: Json, url: str) -> Json:
    """Return a document whose only server is the one at ``url``, without security."""
    document = copy.deepcopy(document)
    document["servers"] = [{"url": url}]
    document.pop("security", None)
    for item in document["paths"].values():
        item.pop("servers", None)
        for method in METHODS:
            if method in item:
                item[method].pop("servers", None)
                item[method].pop("security", None)
    return document


def judgeable(node: Any, *, are_names: bool = False) -> Any:
    """Return a document for the judge.

    It would add the values of ``default``, and has no deepObject with arrays or objects in it. It
    knows few formats, and refuses ``readOnly`` in parameters. Patterns are often those of another
    language.
    """
    if isinstance(node, list):
        kept = [each for each in node if not (isinstance(each, dict) and _is_deep(each))]
        return [judgeable(each) for each in kept]
    if not isinstance(node, dict):
        return node
    if "*/*" in node:  # it reads no range of media types
        node = {"application/json": node["*/*"], **node}
    return {
        key: judgeable(value, are_names=key in ("properties", "responses", "schemas"))
        for key, value in node.items()
        if are_names or key not in _NOT_JUDGED
    }


def _is_deep(parameter: Json) -> bool:
    return parameter.get("style") == "deepObject" and "in" in parameter


async def judged(document: Json, url: str, received: list[Received]) -> tuple[int, list[str]]:
    """Call each operation; return how many are right, and what is wrong with the others."""
    definition = openapi.load(document)
    judge = OpenAPI.from_dict(judgeable(document), config=Config(spec_validator_cls=None))
    right, wrong = 0, []
    async with mcp.Client(openapi.server(definition, base_url=url)) as client:
        for operation in definition.operations:
            sampler = Sampler(operation.input_schema.get("$defs", {}))
            schema = {key: value for key, value in operation.input_schema.items() if key != "$defs"}
            given = {
                name: sampler.value(member, 1) for name, member in schema["properties"].items()
            }
            received.clear()
            result = await client.call_tool(operation.name, given)
            if result.is_error or len(received) != 1:
                wrong.append(f"{operation.name}: not sent: {str(result.content)[:300]}")
                continue
            reason = difference(judge, received[0], operation, given)
            if reason is None:
                right += 1
            else:
                wrong.append(f"{operation.name}: {reason}")
    return right, wrong


def difference(
    judge: OpenAPI, request: Received, operation: DefinedOperation, given: Json
) -> str | None:
    """Return how a request differs from what was given, or None."""
    try:
        read = judge.unmarshal_request(request)
    except Exception as error:
        return f"the judge fails: {type(error).__name__}: {str(error)[:200]}"
    nested = querystring_parser.parse(request.query, normalized=True)
    deep = [each for each in operation.parameters if each.style.how == "deepObject"]
    for parameter in deep:
        if _plain(nested.get(parameter.name)) != _plain(given[parameter.argument]):
            return f"query {parameter.name}: gave {given[parameter.argument]!r}, arrived {nested}"
    multipart = operation.body is not None and operation.body.kind == "multipart"
    if multipart:  # the judge does not read numbers in it
        parts = _parts(request)
        wanted = _plain(_contents(given.get(operation.body.argument or "", {}), operation))
        if parts != {name: value for name, value in wanted.items() if value != []}:
            return f"multipart: gave {wanted!r}, arrived {parts!r}"[:600]
    elif read.errors and not _unreadable(read.errors, request, operation):
        causes = [f"{error} {error.__cause__ or ''}"[:300] for error in read.errors]
        return f"the judge refuses it: {causes}; sent {request.path}?{request.query}"
    for parameter in operation.parameters:
        if parameter in deep:
            continue
        found = getattr(read.parameters, parameter.where).get(parameter.name)
        if parameter.where == "path":
            found = _unquoted(found)
        if _plain(found) != _plain(given[parameter.argument]):
            gave = given[parameter.argument]
            return f"{parameter.where} {parameter.name}: gave {gave!r}, arrived {found!r}"
    if not multipart and operation.body is not None and operation.body.argument is not None:
        body = given[operation.body.argument]
        arrived = read.body
        if operation.body.kind == "json" and request.body and _is_other_json(request):
            arrived = json.loads(request.body)
        if any(
            each.style and each.style.how == "deepObject" for each in operation.body.fields.values()
        ):
            arrived = querystring_parser.parse((request.body or b"").decode(), normalized=True)
        if body == {} and not request.body:
            return None
        if operation.body.kind in ("raw", "text"):
            arrived, body = request.body, _bytes(body, operation.body.kind)
        if _plain(arrived) != _plain(body):
            return f"body: gave {body!r}, arrived {arrived!r}"[:900]
    return None


def _unreadable(errors: list[Exception], request: Received, operation: DefinedOperation) -> bool:
    """Return whether the judge cannot read a body: a deepObject, bytes, or another JSON."""
    if operation.body is None:
        return False
    deep = any(
        field.style and field.style.how == "deepObject" for field in operation.body.fields.values()
    )
    other = operation.body.kind in ("raw", "text") or _is_other_json(request)
    return (deep or other) and all("body" in str(error) for error in errors)


def _is_other_json(request: Received) -> bool:
    return request.content_type.endswith("+json")


def _parts(request: Received) -> Any:
    """Return the fields of a multipart body; several parts of one name are a list."""
    environ = {
        "REQUEST_METHOD": "POST",
        "CONTENT_TYPE": request.content_type,
        "CONTENT_LENGTH": str(len(request.body or b"")),
        "wsgi.input": io.BytesIO(request.body or b""),
    }
    _, form, files = parse_form_data(environ)
    found: dict[str, list[Any]] = {}
    for name, text in form.items(multi=True):
        found.setdefault(name, []).append(json.loads(text) if text[:1] in ("{", "[") else text)
    for name, file in files.items(multi=True):
        found.setdefault(name, []).append(file.read())
    return _plain({name: one[0] if len(one) == 1 else one for name, one in found.items()})


def _bytes(value: Any, kind: str) -> bytes:
    """Return the bytes of a body that is sent unchanged."""
    if isinstance(value, dict):
        return str(value["text"]).encode() if "text" in value else base64.b64decode(value["base64"])
    return base64.b64decode(value) if kind == "raw" else str(value).encode()


def _unquoted(value: Any) -> Any:
    if isinstance(value, list):
        return [_unquoted(each) for each in value]
    return unquote(value) if isinstance(value, str) else value


def _contents(value: Json, operation: DefinedOperation) -> Json:
    """Return a form with the contents of files in place of their descriptions."""
    fields = operation.body.fields if operation.body else {}

    def content(name: str, one: Any) -> Any:
        return one["text"] if name in fields and fields[name].is_file and "text" in one else one

    return {
        name: [content(name, each) for each in one] if isinstance(one, list) else content(name, one)
        for name, one in value.items()
    }


def _plain(value: Any) -> Any:
    """Return a value in which numbers and dates are text: a URL has no types."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (datetime.date, uuid.UUID)):
        return str(value)
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def main() -> None:
    """Print a line for each definition, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--json", type=Path, help="file for what is wrong")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # the MCP client says that it has not listed each tool
    found: dict[str, list[str]] = {}
    total: Counter[str] = Counter()
    with recording() as (url, received):
        for name in options.names:
            document = json.loads((options.folder / f"{name}.json").read_text("utf-8"))
            try:
                right, wrong = anyio.run(judged, located(document, url), url, received)
            except DefinitionError as error:
                print(f"{name:<28} refused: {error}")
                continue
            total += Counter(right=right, all=right + len(wrong))
            found[name] = wrong
            print(f"{name:<28} {right:>5} of {right + len(wrong):>5}", flush=True)
    print(f"{'all':<28} {total['right']:>5} of {total['all']:>5}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
