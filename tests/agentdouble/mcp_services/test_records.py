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
    """Its repr says how to get the whole."""
    text = repr(access_record(Weather(), "http://127.0.0.1:1/"))

    assert (False, True) == (SECRET in text, "json.dumps()" in text)
