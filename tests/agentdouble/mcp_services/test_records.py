"""Access records as values: whole for programs, without their key for whoever looks."""

from __future__ import annotations

import copy
import json
import pickle

from agentdouble.mcp_services import Key, access_record

SECRET = "sk-very-secret"
WHOLE = {
    "mcpServers": {
        "<weather>": {
            "httpUrl": "http://127.0.0.1:1/mcp/<weather>",
            "headers": {"Authorization": f"Bearer {SECRET}"},
        }
    }
}


class Weather:
    name = "<weather>"
    keys = (Key("default", SECRET),)


def test_a_record_is_a_dict_with_its_key() -> None:
    """Whatever takes a dict takes it whole."""
    record = access_record(Weather(), "http://127.0.0.1:1/")

    assert isinstance(record, dict)
    assert WHOLE == record == copy.deepcopy(record) == pickle.loads(pickle.dumps(record))
    assert json.dumps(WHOLE) == json.dumps(record)


def test_a_record_does_not_show_its_key() -> None:
    """Neither does a part of it, and both say how to get the whole."""
    record = access_record(Weather(), "http://127.0.0.1:1/")
    server = record["mcpServers"]["<weather>"]

    for one in (record, record["mcpServers"], server, server["headers"]):
        for shown in (repr(one), f"{one}", one._repr_html_()):
            assert (False, True, True) == (
                SECRET in shown,
                "Bearer ***" in shown,
                "json.dumps()" in shown,
            )
        assert "<weather>" not in one._repr_html_()


def test_a_record_that_was_added_to_shows_that_too() -> None:
    """Whatever somebody has put into the dict, also what JSON has not."""
    record = access_record(Weather(), "http://127.0.0.1:1/")
    record["seen"] = {1, 2}

    assert '"seen": "{1, 2}"' in repr(record)
    assert "{1, 2}" in record._repr_html_()
