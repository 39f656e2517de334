from __future__ import annotations

import pytest
from mcp import MCPError
from mcp.types import INVALID_PARAMS, PaginatedRequestParams, Tool

from agentdouble.mcp_services.openapi.serving import LARGEST_PAGE, ToolPages


def tool(name: str, size: int = 0) -> Tool:
    return Tool(name=name, description="x" * size, input_schema={"type": "object"})


def pages(tools: list[Tool]) -> list[list[str]]:
    """Return the names on each page, as a client follows the cursors."""
    made = ToolPages(tools)
    page = made.page(None)
    found = [[one.name for one in page.tools]]
    while page.next_cursor is not None:
        page = made.page(PaginatedRequestParams(cursor=page.next_cursor))
        found.append([one.name for one in page.tools])
    return found


def cursor(tools: list[Tool]) -> PaginatedRequestParams:
    """Return the request for the second page."""
    return PaginatedRequestParams(cursor=ToolPages(tools).page(None).next_cursor)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], [[]]),
        ([10, 10], [["0", "1"]]),
        ([LARGEST_PAGE * 2], [["0"]]),
        ([LARGEST_PAGE * 2] * 2, [["0"], ["1"]]),
        ([10, LARGEST_PAGE, 10], [["0"], ["1"], ["2"]]),
        ([LARGEST_PAGE // 3] * 5, [["0", "1"], ["2", "3"], ["4"]]),
    ],
)
def test_a_page_ends_before_it_is_too_large(sizes: list[int], expected: list[list[str]]) -> None:
    """It has one tool at least."""
    assert expected == pages([tool(str(index), size) for index, size in enumerate(sizes)])


def test_a_cursor_is_right_for_the_same_list_wherever_it_is_made() -> None:
    """In each process and session, and if tools after the page change."""
    tools = [tool(str(index), LARGEST_PAGE // 2) for index in range(4)]
    changed = [*tools[:-1], tool("other")]

    assert [["1"], ["1"]] == [
        [one.name for one in ToolPages(each).page(cursor(tools)).tools] for each in (tools, changed)
    ]


@pytest.mark.parametrize("change", [slice(1, None), slice(None, None, -1)], ids=["less", "order"])
def test_the_cursor_of_a_changed_list_is_refused(change: slice) -> None:
    """A tool would be left out, or be there twice."""
    tools = [tool(str(index), LARGEST_PAGE // 2) for index in range(4)]

    with pytest.raises(MCPError, match="or has changed since: ask for it again without a cursor"):
        ToolPages(tools[change]).page(cursor(tools))


@pytest.mark.parametrize("text", ["", "nobody's", "0" * 64])
def test_a_cursor_that_is_nobody_s_is_refused(text: str) -> None:
    """With the code of wrong parameters."""
    with pytest.raises(MCPError) as refused:
        ToolPages([tool("a")]).page(PaginatedRequestParams(cursor=text))

    assert INVALID_PARAMS == refused.value.error.code


def test_tools_that_look_alike_are_all_listed() -> None:
    """Each page has a cursor of its own."""
    assert [["same"]] * 3 == pages([tool("same", LARGEST_PAGE) for _ in range(3)])
