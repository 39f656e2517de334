from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agentdouble import Settings
from agentdouble.core import ledger, profiles
from agentdouble.errors import LedgerError, ProfileError

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
        ({"operations": ["*"], "paths": ["$"], "missing": False}, "missing = False"),
        ({"operations": ["*"], "paths": ["$"], "path": ["$"]}, "path = "),
    ],
)
def test_an_invalid_effect_is_refused_with_its_key(entry: dict[str, object], message: str) -> None:
    """The file is checked when it is read."""
    with pytest.raises(LedgerError) as caught:
        ledger.effect("U-X", entry)

    assert ("U-X", True) == (caught.value.unknown, message in str(caught.value))


PROFILE = """
[unknowns]
U-SESSION-DUPLICATE = "400"
U-EXEC-SUCCESS = "true"

[evidence.U-SESSION-DUPLICATE]
answer = "400"
target = "https://agent.example.com"
date = "2026-11-21T22:40:00+00:00"
seen = "the second creation was answered with 400"
exchanges = ["POST /apps/a/users/u/sessions/s -> 400"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A profile that chooses two alternatives."""
    file = tmp_path / "profile.toml"
    file.write_text(PROFILE)
    return file


def refusal(file: Path) -> str:
    with pytest.raises(ProfileError) as caught:
        profiles.read(file)
    assert str(file) == caught.value.file
    return str(caught.value).replace(str(file), "FILE")


def test_a_profile_settles_what_it_chooses(file: Path) -> None:
    """Other unknowns stay guesses."""
    chosen = Settings.load(profile=file).chosen()

    assert ("400", "true") == tuple(
        chosen.answer(id_).name for id_ in ("U-SESSION-DUPLICATE", "U-EXEC-SUCCESS")
    )
    assert {"U-SESSION-DUPLICATE", "U-EXEC-SUCCESS"} == chosen.settled
    assert "absolute" == chosen.answer("U-TTL-EXTENDS").name


def test_an_explicit_choice_overrides_the_profile(file: Path) -> None:
    """It is not settled, because the profile says otherwise."""
    chosen = Settings.load(profile=file, unknowns={"U-EXEC-SUCCESS": "false"}).chosen()

    assert "false" == chosen.answer("U-EXEC-SUCCESS").name
    assert {"U-SESSION-DUPLICATE"} == chosen.settled


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[unknowns]\nU-TTL-EXTEND = 'sliding'", "FILE: There is no unknown 'U-TTL-EXTEND'."),
        ("[unknowns]\nU-TTL-EXTEND = 'sliding'", "Did you mean U-TTL-EXTENDS?"),
        ("[unknowns]\nU-TTL-EXTENDS = 'slidng'", "It has: absolute, sliding. Did you mean sliding"),
        ("[unknowns]\nU-RUN-CODE-RETURN = 'object'", "FILE: U-RUN-CODE-RETURN: this version of ag"),
        ("[unknowns]\nU-TTL-EXTENDS = 1", "U-TTL-EXTENDS must name an alternative"),
        ("unknowns = 3", "FILE, unknowns must be a table: [unknowns]."),
        ("[unknown]", "has 'unknown', which does not exist; the tables of a profile are unkno"),
        ("[unknown]", "Did you mean unknowns?"),
        ("[evidence.U-NOTHING]", "In the evidence of the profile FILE: There is no unknown"),
        (
            "[evidence.U-LIMITS]\nanwser = 'x'",
            "has 'anwser', which does not exist; the keys of evi",
        ),
        ("[evidence]\nU-LIMITS = 1", "evidence.U-LIMITS must be a table"),
        ("[unknowns", "The profile FILE cannot be read: "),
    ],
)
def test_an_invalid_profile_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """The error names the file, the mistake and the nearest valid value."""
    file = tmp_path / "profile.toml"
    file.write_text(content)

    assert message in refusal(file)


def test_a_ledger_can_be_changed_and_restored(file: Path) -> None:
    """An invalid change has no effect."""
    changed = ledger.Ledger({"U-EXEC-SUCCESS": "true"})
    changed.change({"U-TTL-EXTENDS": "sliding"})
    with pytest.raises(LedgerError):
        changed.change({"U-TTL-EXTENDS": "none"})
    during = changed.answers()
    changed.change({})

    assert ("true", "sliding") == (during["U-EXEC-SUCCESS"], during["U-TTL-EXTENDS"])
    assert ledger.Ledger({"U-EXEC-SUCCESS": "true"}).answers() == changed.answers()
