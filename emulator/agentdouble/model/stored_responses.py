"""The responses that a double keeps, so that the next request can name the previous one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model import conversation
from agentdouble.model.conversation import Body

_MOST = 1000  # responses
_MOST_BYTES = 64 * 1024 * 1024  # of their requests
_PAGE = 20  # items, as the vendor's own


@dataclass(frozen=True)
class _Stored:
    document: Mapping[str, Any]
    items: list[dict[str, Any]]
    previous: str | None
    size: int


class StoredResponses:
    """Responses by id, with the items of their requests; the oldest go first."""

    def __init__(self) -> None:
        self._stored: dict[str, _Stored] = {}

    def clear(self) -> None:
        """Forget all."""
        self._stored.clear()

    def keep(self, body: Body, document: Mapping[str, Any], size: int) -> None:
        """Keep a response to a request of ``size`` bytes, unless that forbids it."""
        if not conversation.flag(body, "store", True):
            return
        previous = body.get("previous_response_id")
        self._stored[document["id"]] = _Stored(document, own_items(body), previous, size)
        while len(self._stored) > _MOST or (
            len(self._stored) > 1 and sum(one.size for one in self._stored.values()) > _MOST_BYTES
        ):
            del self._stored[next(iter(self._stored))]

    def conversation(self, body: Body) -> list[dict[str, Any]]:
        """Return the items of a request, after those of the responses before it.

        Raises ModelError for a previous response or a referenced item that is not kept.
        """
        chain = [[self._resolved(item) for item in own_items(body)]]
        previous = body.get("previous_response_id")
        while previous is not None:
            stored = self._stored.get(previous) if isinstance(previous, str) else None
            if stored is None:
                raise ModelError(
                    f"Previous response with id {previous!r:.80} not found. {self._listed()}",
                    code="previous_response_not_found",
                    param="previous_response_id",
                )
            items = [self._resolved(item) for item in stored.items]
            chain.append([*items, *stored.document["output"]])
            previous = stored.previous
        return [item for items in reversed(chain) for item in items]

    def get(self, response_id: str) -> Mapping[str, Any]:
        """Return a response. Raise ModelError if it is not kept."""
        return self._require(response_id).document

    def delete(self, response_id: str) -> None:
        """Forget a response. Raise ModelError if it is not kept."""
        self._require(response_id)
        del self._stored[response_id]

    def input_items(self, response_id: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the items of the request of a response as a page, by ``order`` and ``after``."""
        items = [
            _listed_item(item, f"{response_id}_{index}")
            for index, item in enumerate(self._require(response_id).items)
        ]
        if query.get("order", "desc") == "desc":
            items.reverse()
        ids = [item["id"] for item in items]
        if query.get("after") in ids:
            items = items[ids.index(query["after"]) + 1 :]
        limit = query.get("limit", "")
        page = items[: int(limit) if limit.isdecimal() else _PAGE]
        return {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(page) < len(items),
        }

    def _require(self, response_id: str) -> _Stored:
        if response_id not in self._stored:
            raise ModelError(
                f"Response with id {response_id!r:.80} not found. {self._listed()}", status=404
            )
        return self._stored[response_id]

    def _listed(self) -> str:
        ids = list(self._stored)
        shown = ", ".join(ids[-5:])
        return (
            f"Kept are {len(ids)}, {shown} among them; those with store false are not."
            if ids
            else "None is kept: a response is, unless its request has store false."
        )

    def _resolved(self, item: dict[str, Any]) -> dict[str, Any]:
        """Return the item that an item refers to, or itself."""
        if item.get("type", "item_reference") != "item_reference" or "role" in item:
            return item
        for stored in self._stored.values():
            for output in stored.document["output"]:
                if output["id"] == item.get("id"):
                    found: dict[str, Any] = output
                    return found
        raise ModelError(
            f"Item with id {item.get('id')!r:.80} not found. {self._listed()}", param="input"
        )


def own_items(body: Body) -> list[dict[str, Any]]:
    """Return the items of a request's input, which may be a text. Raise ModelError."""
    items = body.get("input")
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return conversation.objects(items, "input")


def _listed_item(item: dict[str, Any], name: str) -> dict[str, Any]:
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    listed = {"type": "message", "id": f"item_{name}", "status": "completed", **item}
    return {**listed, "content": content} if content is not None else listed
