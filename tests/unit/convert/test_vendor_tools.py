from __future__ import annotations

from typing import Any

import pytest

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError
from moot.plugins import DIALECTS
from moot.providers.endpoints.servers import Custom
from moot.providers.endpoints.vendors import OpenAI
from moot.types.message import Message, text_part
from moot.types.model import Model, ModelId
from moot.types.provider import ModelPrompt, Quirks, ToolDefinition

OWN = ToolDefinition("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
SEARCH = {"type": "web_search"}


def tools(dialect: str, *own: ToolDefinition, vendor: tuple[Any, ...] = (SEARCH,)) -> list[Any]:
    model = Model(ModelId("m", "here"), "m")
    prompt = ModelPrompt(model, "", (Message("u", "user", (text_part("hi"),)),), own, quirks=Quirks(vendor_tools=vendor))
    found: Any = DIALECTS.make(dialect).to_request(prompt).get("tools", [])
    return list(found)


@pytest.mark.parametrize("dialect", ["anthropic", "google", "openai-responses"])
def test_vendor_tools_are_sent_unchanged(dialect: str) -> None:
    assert tools(dialect) == [SEARCH]
    assert len(tools(dialect, OWN)) == 2 and tools(dialect, OWN)[-1] == SEARCH
    assert tools(dialect, vendor=()) == []


@pytest.mark.parametrize("dialect", ["ollama", "openai-chat"])
def test_dialects_without_vendor_tools_omit_them(dialect: str) -> None:
    assert tools(dialect) == [] and len(tools(dialect, OWN)) == 1


def test_a_configuration_entry_lists_vendor_tools() -> None:
    openai = OpenAI(ProviderSettings("openai", options={"vendor_tools": [SEARCH]}))
    assert openai.quirks.vendor_tools == (SEARCH,) and openai.quirks.developer_role
    options: Any = {"vendor_tools": [SEARCH], "quirks": {"max_tokens": "max_completion_tokens"}}
    custom = Custom(ProviderSettings("mine", base_url="http://host", options=options))
    assert (custom.quirks.vendor_tools, custom.quirks.max_tokens) == ((SEARCH,), "max_completion_tokens")


@pytest.mark.parametrize("given", ["web_search", ["web_search"], {"type": "web_search"}])
def test_invalid_vendor_tools_are_a_config_error(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"providers\.openai\.vendor_tools"):
        OpenAI(ProviderSettings("openai", options={"vendor_tools": given}))
