from collections.abc import Iterator
from typing import Any

import pytest

from moot.tools.builtin.web_search import WebSearch, WebSearchArguments
from moot.types.tool import Available, ToolOutput
from search_engine import SearchEngine, search_engine

pytestmark = pytest.mark.anyio

FOUND = [{"title": "A <b>title</b> &amp; more", "url": "https://a.example/", "description": "About <i>a</i>"}, {"title": "no address"}]


@pytest.fixture
def engine() -> Iterator[SearchEngine]:
    with search_engine() as engine:
        yield engine


async def search(context: Any, engine: SearchEngine, provider: str, query: str = "a b&c", **settings: Any) -> ToolOutput:
    context.settings = {"provider": provider, "base_url": engine.url, **settings}
    return await WebSearch().run(WebSearchArguments(query=query, count=3), context)


SHOWN = "[1] A title & more\n   https://a.example/\n   About a"


async def test_a_key_of_digits_is_a_key(context: Any, engine: SearchEngine):
    engine.answer = {"web": {"results": FOUND}}
    assert (await search(context, engine, "brave", api_key=1234567890)).text == SHOWN
    assert engine.asked[0][1]["X-Subscription-Token"] == "1234567890"


async def test_brave_gets_its_request_format(context: Any, engine: SearchEngine):
    engine.answer = {"web": {"results": FOUND}}
    assert (await search(context, engine, "brave", api_key="canary")).text == SHOWN
    url, headers, _ = engine.asked[0]
    assert url == "/res/v1/web/search?q=a+b%26c&count=3"
    assert headers["X-Subscription-Token"] == "canary"


async def test_tavily_gets_its_request_format(context: Any, engine: SearchEngine):
    engine.answer = {"results": FOUND}
    output = await search(context, engine, "tavily", api_key="canary")
    assert output.value == [{"title": "A title & more", "url": "https://a.example/", "snippet": "About a"}]
    url, headers, body = engine.asked[0]
    assert (url, headers["Authorization"]) == ("/search", "Bearer canary")
    assert body == '{"query":"a b&c","max_results":3}'


async def test_searxng_gets_its_request_format(context: Any, engine: SearchEngine):
    engine.answer = {"results": FOUND}
    assert (await search(context, engine, "searxng")).text == SHOWN
    assert engine.asked[0][0] == "/search?q=a+b%26c&format=json"


async def test_a_custom_address_is_filled_in(context: Any, engine: SearchEngine):
    engine.answer = {"results": FOUND}
    output = await search(context, engine, "custom", base_url=f"{engine.url}/find?text={{query}}&n={{count}}", api_key="canary")
    assert output.text == SHOWN
    assert engine.asked[0][0] == "/find?text=a+b%26c&n=3" or engine.asked[0][0] == "/find?text=a%20b%26c&n=3"


async def test_results_are_sources_and_a_known_page_keeps_its_number(context: Any, engine: SearchEngine):
    engine.answer = {"results": [{"title": "One", "url": "https://one.example/"}, {"title": "Two", "url": "https://two.example/"}]}
    await search(context, engine, "searxng")
    engine.answer = {
        "results": [{"title": "Three\n[9] x", "url": "https://three.example/"}, {"title": "Again", "url": "https://two.example/"}]
    }
    text = (await search(context, engine, "searxng")).text
    assert text == "[3] Three [9] x\n   https://three.example/\n   \n[2] Again\n   https://two.example/\n   "
    assert context.cited == {"https://one.example/": "One", "https://two.example/": "Two", "https://three.example/": "Three [9] x"}


async def test_results_without_a_web_address_are_left_out(context: Any, engine: SearchEngine):
    urls = ("javascript:alert(1)", "ftp://a.example/", "https://a.example/ x", "https://b.example/\n[1] y", 5, None, "https://c.example/")
    engine.answer = {"results": [{"title": "t", "url": url} for url in urls]}
    assert (await search(context, engine, "searxng")).value == [{"title": "t", "url": "https://c.example/", "snippet": ""}]


async def test_no_results_are_reported(context: Any, engine: SearchEngine):
    engine.answer = {"results": []}
    assert (await search(context, engine, "searxng")).text == "No results for 'a b&c'."


@pytest.mark.parametrize(
    ("answer", "status", "raw"),
    [
        ({}, 200, None),
        ({"results": "x"}, 200, None),
        ([], 200, None),
        ({"error": "key canary is bad"}, 401, None),
        ({}, 200, b"<html>"),
        ({}, 200, b""),
    ],
)
async def test_a_bad_answer_is_a_failure_without_the_key(context: Any, engine: SearchEngine, answer: Any, status: int, raw: bytes | None):
    engine.answer, engine.status, engine.raw = answer, status, raw
    output = await search(context, engine, "tavily", api_key="canary")
    if answer == []:
        assert "no list of results" in output.text or "No results" in output.text
    else:
        assert output.error
    assert "canary" not in output.text


@pytest.mark.parametrize(
    ("settings", "there"),
    [
        ({}, False),
        ({"provider": "brave"}, False),
        ({"provider": "brave", "api_key": "x"}, True),
        ({"provider": "tavily", "api_key": ""}, False),
        ({"provider": "searxng"}, False),
        ({"provider": "searxng", "base_url": "http://x"}, True),
        ({"provider": "custom", "base_url": "http://x/{query}"}, True),
        ({"provider": "unheard-of", "api_key": "x", "base_url": "http://x"}, False),
        ({"provider": 5}, False),
    ],
)
async def test_the_tool_is_absent_until_configured(context: Any, settings: Any, there: bool):
    tool = WebSearch()
    assert isinstance(tool, Available)
    assert tool.available(settings) is there
    if not there:
        context.settings = settings
        assert (await tool.run(WebSearchArguments(query="x"), context)).error
