"""Responses that are kept, and requests that follow them by previous_response_id."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agentdouble.model.clients import CALL, Model, events

pytestmark = pytest.mark.smoke


def turns(model: Model) -> list[tuple[str, str]]:
    """Return role and text of each turn of the last request."""
    last = model.admin.get("/model").json()["requests"][-1]
    return [(turn["role"], turn["text"]) for turn in last["turns"]]


def test_a_request_follows_the_previous_response(model: Model) -> None:
    """The result of a tool alone is enough; instructions are not carried over."""
    model.script({"text": "It is {{result}}."}, after="run_code")
    model.script(CALL, {"text": "Nothing else."})

    first = model.respond("What is 6 * 7?", instructions="Be brief.").json()
    call = first["output"][0]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
    second = model.respond([result], previous_response_id=first["id"]).json()
    third = model.respond("And now?", previous_response_id=second["id"]).json()

    assert "It is 42." == second["output"][0]["content"][0]["text"]
    assert first["id"] == second["previous_response_id"]
    assert "Nothing else." == third["output"][0]["content"][0]["text"]
    assert [
        *(("user", "What is 6 * 7?"), ("assistant", ""), ("tool", "42")),
        *(("assistant", "It is 42."), ("user", "And now?")),
    ] == turns(model)


def test_two_requests_follow_the_same_response(model: Model) -> None:
    model.script({"text": "Yes.", "times": "all"})
    first = model.respond("one").json()["id"]

    for prompt in ("two", "three"):
        model.respond(prompt, previous_response_id=first)
        assert [("user", "one"), ("assistant", "Yes."), ("user", prompt)] == turns(model)


def test_a_response_is_kept_unless_its_request_forbids_it(model: Model) -> None:
    model.script({"text": "Yes.", "times": "all"})
    kept = model.respond("one").json()
    streamed = events(model.respond("one", stream=True))[-1]["response"]
    other = model.respond("one", store=False).json()

    got = [model.openai.get(f"/responses/{one['id']}") for one in (kept, streamed, other)]

    assert [kept, streamed] == [response.json() for response in got[:2]]
    assert (404, False) == (got[2].status_code, other["store"])
    assert "not found" in got[2].json()["error"]["message"]
    refused = model.respond("two", previous_response_id=other["id"])
    error = refused.json()["error"]
    assert (400, "previous_response_not_found") == (refused.status_code, error["code"])
    assert "previous_response_id" == error["param"]


def test_a_response_is_deleted(model: Model) -> None:
    model.script({"text": "Yes.", "times": "all"})
    name = model.respond("one").json()["id"]

    deleted = model.openai.delete(f"/responses/{name}")

    assert {"id": name, "object": "response", "deleted": True} == deleted.json()
    for again in (
        model.openai.delete(f"/responses/{name}"),
        model.openai.get(f"/responses/{name}"),
    ):
        assert 404 == again.status_code
    assert 400 == model.respond("two", previous_response_id=name).status_code


def test_the_input_of_a_response_is_listed_in_pages(model: Model) -> None:
    model.script({"text": "Yes."})
    said: list[dict[str, Any]] = [{"role": "user", "content": text} for text in ("a", "b", "c")]
    name = model.respond(said).json()["id"]

    page = model.openai.get(f"/responses/{name}/input_items?order=asc&limit=2").json()
    rest = model.openai.get(
        f"/responses/{name}/input_items?order=asc&after={page['last_id']}"
    ).json()

    texts = [item["content"][0]["text"] for item in page["data"] + rest["data"]]
    assert (["a", "b", "c"], True, False) == (texts, page["has_more"], rest["has_more"])


def test_a_response_in_the_background_is_queued_and_then_complete(model: Model) -> None:
    model.script({"text": "Yes."})

    queued = model.respond("one", background=True).json()
    complete = model.openai.get(f"/responses/{queued['id']}").json()
    cancel = model.openai.post(f"/responses/{queued['id']}/cancel")

    assert ("queued", []) == (queued["status"], queued["output"])
    assert ("completed", True) == (complete["status"], complete["background"])
    assert 400 == cancel.status_code
    assert "is completed" in cancel.json()["error"]["message"]


def test_an_item_can_be_named_instead_of_repeated(model: Model) -> None:
    model.script({"text": "Yes.", "times": "all"})
    item = model.respond("one").json()["output"][0]["id"]

    model.respond([{"type": "item_reference", "id": item}, {"role": "user", "content": "two"}])
    assert [("assistant", "Yes."), ("user", "two")] == turns(model)
    missing = model.respond([{"type": "item_reference", "id": "msg_999"}])
    assert "Item with id 'msg_999' not found" in missing.json()["error"]["message"]


def test_a_reset_forgets_all_responses(model: Model) -> None:
    model.script({"text": "Yes."})
    name = model.respond("one").json()["id"]

    model.admin.post("/reset")

    assert 404 == model.openai.get(f"/responses/{name}").status_code
