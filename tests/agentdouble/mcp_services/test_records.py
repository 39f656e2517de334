"""Access records as values: complete for programs, with a hidden key in their repr."""

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


def test_record_is_a_dict_with_its_key() -> None:
    """Any function that takes a dict gets it whole."""
    record = access_record(Weather(), "http://127.0.0.1:1/")

    assert isinstance(record, dict)
    assert WHOLE == record == copy.deepcopy(record) == pickle.loads(pickle.dumps(record))
    assert json.dumps(WHOLE) == json.dumps(record)


def test_record_s_repr_hides_its_key() -> None:
    """It says how to get the whole record."""
    text = repr(access_record(Weather(), "http://127.0.0.1:1/"))

    assert (False, True) == (SECRET in text, "json.dumps()" in text)
