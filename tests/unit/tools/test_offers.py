from pathlib import Path

import pytest

from moot.config.settings import Models, Settings
from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.tools.catalogue import provided_tool, tools_for
from moot.types.agent import Agent

SEARCHING = {"web_search": {"provider": "searxng", "base_url": "http://127.0.0.1:1"}}


def names(agent: Agent, **settings: object) -> list[str]:
    return [one.name for one in tools_for(Settings(home=Path("/nowhere"), **settings), agent)]  # type: ignore[arg-type]


NEEDY = ("generate_image", "transcribe_audio", "web_search")
"""Tools that are absent until they are configured."""

HIDDEN = (
    *("activate_skill", "change_setting", "create_agent", "cron", "delegate", "deliver", "diagnostics", "exit_plan", "finish_task"),
    *("knowledge_search", "memory", "read_setting", "run_skill_script", "run_status", "search_history", "tasks"),
)
"""Tools that an agent has to name."""


def test_an_agent_gets_all_tools_in_a_fixed_order():
    assert names(Agent()) == [name for name in TOOLS.names() if name not in (*NEEDY, *HIDDEN)]
    every = names(Agent(), tools=SEARCHING, models=Models(image="a@b", transcription="c@d"))
    assert every == [name for name in TOOLS.names() if name not in HIDDEN]
    assert names(Agent(tools=HIDDEN)) == list(HIDDEN)


def test_an_agent_can_list_its_tools():
    assert names(Agent(tools=("shell", "read_file"))) == ["read_file", "shell"]
    assert names(Agent(tools=())) == []


def test_an_unknown_name_is_an_error_with_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'read_file'"):
        names(Agent(name="reviewer", tools=("read_fiel",)))


def test_the_role_read_excludes_tools_that_write():
    assert names(Agent(role="read"), tools=SEARCHING) == ["ask_user", "find_files", "list_files", "read_file", "search_files", "todo"]


def test_unconfigured_tools_are_absent_even_if_listed():
    assert names(Agent(tools=("web_search", "todo", "generate_image"))) == ["todo"]


def test_web_search_can_be_turned_on_and_off():
    def offered(agent: Agent, web_search: bool | None) -> list[str]:
        return [one.name for one in tools_for(Settings(home=Path("/nowhere"), tools=SEARCHING), agent, web_search=web_search)]

    assert offered(Agent(tools=("todo",)), None) == ["todo"]
    assert offered(Agent(tools=("todo",)), True) == ["fetch_url", "todo", "web_search"]
    assert offered(Agent(tools=("todo", "web_search", "fetch_url")), False) == ["fetch_url", "todo"]
    assert [name for name in offered(Agent(), None) if name not in offered(Agent(), False)] == ["web_search"]
    assert offered(Agent(), True) == offered(Agent(), None)
    assert "web_search" not in offered(Agent(role="read"), True)


def test_a_tool_is_found_by_name():
    assert provided_tool("shell").name == "shell"
    with pytest.raises(UsageError):
        provided_tool("shel")
