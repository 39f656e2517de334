"""The tables of the documentation and those of the code are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentdouble.model.fields import (
    CHAT_COMPLETIONS,
    EMBED_CONTENT,
    EMBEDDINGS,
    GENERATE_CONTENT,
    RESPONSES,
    FieldTable,
)

PAGE = Path(__file__).parents[3] / "emulator" / "docs" / "model.md"
TABLES = (CHAT_COMPLETIONS, RESPONSES, GENERATE_CONTENT, EMBEDDINGS, EMBED_CONTENT)


def rows(table: FieldTable) -> str:
    """Return a table of fields as the page has it."""
    lines = ["| field | what the double does |", "|---|---|"]
    for effect, names in (
        ("honoured", table.honoured),
        ("without effect", table.without_effect),
        ("without effect; other endpoints of this form have it", table.extensions),
    ):
        if names:
            lines.append(f"| {', '.join(f'`{name}`' for name in sorted(names))} | {effect} |")
    for name, refused in sorted(table.refused.items()):
        but = " or ".join(f"`{value}`".replace("'", '"') for value in refused.accepted)
        but = f", except {but}" if but else ""
        lines.append(f"| `{name}` | refused{but}: {refused.reason} |")
    return "\n".join(lines)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.form)
def test_the_page_has_every_field(table: FieldTable) -> None:
    expected = rows(table)

    assert expected in PAGE.read_text("utf-8"), f"The page must have:\n{expected}"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.form)
def test_a_field_stands_in_one_table(table: FieldTable) -> None:
    kinds = (table.honoured, table.without_effect, frozenset(table.refused), table.extensions)

    assert sum(map(len, kinds)) == len(table.names)
