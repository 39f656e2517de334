from __future__ import annotations

import asyncio

import pytest

from agentdouble.core import ledger
from agentdouble.errors import LedgerError

ANSWERS = [
    pytest.param(unknown.id, alternative, id=f"{unknown.id}-{alternative.name}")
    for unknown in ledger.unknowns().values()
    for alternative in unknown.alternatives
]


def test_every_unknown_is_documented() -> None:
    """Each has a question, a section and the meaning of its default."""
    incomplete = [
        unknown.id
        for unknown in ledger.unknowns().values()
        if not (unknown.id.startswith("U-") and unknown.section and unknown.question)
        or not (unknown.default.name and unknown.default.meaning and unknown.default.built)
    ]

    assert [] == incomplete


@pytest.mark.parametrize(("id_", "alternative"), ANSWERS)
def test_only_built_alternatives_can_be_chosen(id_: str, alternative: ledger.Alternative) -> None:
    """The error names the unknown and the missing alternative."""
    if alternative.built:
        assert alternative == ledger.Ledger({id_: alternative.name}).answer(id_)
        return
    with pytest.raises(LedgerError, match=f"{id_}: .*has not built") as caught:
        ledger.Ledger({id_: alternative.name})
    assert id_ == caught.value.unknown


def test_a_misspelt_unknown_suggests_the_nearest() -> None:
    with pytest.raises(LedgerError, match=r"no unknown 'u-ttl-extend'. Did you mean U-TTL-EXTENDS"):
        ledger.Ledger({"u-ttl-extend": "sliding"})


def test_using_applies_a_ledger_and_records_its_use() -> None:
    """The default applies again afterwards."""
    with ledger.using(ledger.Ledger({"U-TTL-EXTENDS": "sliding"})) as relied_on:
        chosen = [ledger.choose("U-TTL-EXTENDS"), ledger.choose("U-TTL-AFTER")]

    assert ["sliding", "new-instance"] == chosen
    assert {"U-TTL-EXTENDS", "U-TTL-AFTER"} == relied_on
    assert "absolute" == ledger.choose("U-TTL-EXTENDS")


def test_tasks_and_threads_use_the_ledger_of_their_request() -> None:

    async def request() -> tuple[list[str], set[str]]:
        async def task() -> str:
            return ledger.choose("U-TTL-EXTENDS")

        with ledger.using(ledger.Ledger({"U-TTL-EXTENDS": "sliding"})) as relied_on:
            chosen = await asyncio.create_task(task())
            in_thread = await asyncio.to_thread(ledger.choose, "U-TTL-AFTER")
        return [chosen, in_thread], relied_on

    assert (["sliding", "new-instance"], {"U-TTL-EXTENDS", "U-TTL-AFTER"}) == asyncio.run(request())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"operations": ["POST /run"]}, "U-X explains without paths"),
        ({"paths": ["$"]}, "U-X explains without operations"),
        ({"operations": "POST /run", "paths": ["$"]}, "operations = 'POST /run'"),
        ({"operations": ["*"], "paths": ["$"], "values": ["200"]}, "values = "),
        ({"operations": ["*"], "paths": ["$"], "content": ["$"]}, "content = "),
        ({"operations": ["*"], "paths": ["$"], "missing": False}, "missing = False"),
        ({"operations": ["*"], "paths": ["$"], "path": ["$"]}, "path = "),
    ],
)
def test_an_invalid_effect_is_refused_with_its_key(entry: dict[str, object], message: str) -> None:
    """The file is checked when it is read."""
    with pytest.raises(LedgerError) as caught:
        ledger.effect("U-X", entry)

    assert ("U-X", True) == (caught.value.unknown, message in str(caught.value))
