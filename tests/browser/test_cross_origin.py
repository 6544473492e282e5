"""A page of another port in a signed-in user's browser: everything it sends is rejected, and nothing changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser

from browser.moot_server import Served

PAGE = """<!doctype html><title>elsewhere</title><body><script>
const to = new URLSearchParams(location.search).get('to')
const id = new URLSearchParams(location.search).get('id')
const said = []
window.done = (async () => {
  const attempt = async (name, work) => { try { said.push([name, await work()]) } catch (error) { said.push([name, 'no']) } }
  const post = (path, init) => fetch(to + path, { method: 'POST', credentials: 'include', ...init })
  const reads = async (answer) => (answer.type === 'opaque' ? 'opaque' : answer.status)
  const plain = { headers: { 'content-type': 'text/plain' }, body: '{"title": "taken"}' }
  await attempt('simple post', async () => reads(await post(`/api/conversations/${id}/fork`, { mode: 'no-cors', ...plain })))
  await attempt('post without a body', async () => reads(await post(`/api/chat/${id}/stop`, { mode: 'no-cors' })))
  await attempt('readable post', async () => reads(await post('/api/conversations', plain)))
  await attempt('json post', async () => reads(await post('/api/tokens', { headers: { 'content-type': 'application/json' }, body: '{}' })))
  await attempt('get', async () => reads(await fetch(`${to}/api/conversations`, { credentials: 'include' })))
  await attempt('blind get', async () => reads(await fetch(`${to}/api/tokens`, { credentials: 'include', mode: 'no-cors' })))
  await attempt('delete', async () => reads(await fetch(`${to}/api/conversations/${id}`, { method: 'DELETE', credentials: 'include' })))
  const loads = (tag, attributes) => new Promise((done) => {
    const element = Object.assign(document.createElement(tag), attributes)
    element.onload = () => done('loaded')
    element.onerror = () => done('no')
    document.body.append(element)
    setTimeout(() => done('silent'), 3000)
  })
  await attempt('img', () => loads('img', { src: `${to}/api/session?img` }))
  await attempt('script', () => loads('script', { src: `${to}/api/session?script` }))
  await attempt('events', () => new Promise((done) => {
    const source = new EventSource(`${to}/api/conversations/${id}/events?after=0`, { withCredentials: true })
    source.onmessage = () => { source.close(); done('heard') }
    source.onerror = () => { source.close(); done('no') }
  }))
  const frame = Object.assign(document.createElement('iframe'), { name: 'sink' })
  document.body.append(frame)
  await attempt('form', () => new Promise((done) => {
    const form = document.createElement('form')
    Object.assign(form, { action: `${to}/api/conversations/${id}/fork?form`, method: 'post', target: 'sink', enctype: 'text/plain' })
    form.append(Object.assign(document.createElement('input'), { name: '{"title": "taken", "x": "', value: '"}' }))
    document.body.append(form)
    frame.onload = () => done('sent')
    form.submit()
  }))
  return said
})()
</script>"""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A malicious server on another port of this machine. Browsers send it our cookies, because ports don't separate sites."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_page_of_another_port_cannot_use_the_session_cookie(browser: Browser, server: Served, elsewhere: str) -> None:
    id = server.say("say Mine alone")

    def standing() -> Any:
        return [server.call("GET", path)["data"] for path in ("/api/conversations?limit=200", "/api/tokens", "/api/runs")]

    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(server.login())
        page.locator("main h1").first.wait_for()
        page.goto("about:blank")  # otherwise the page's own polling would be among the requests
        before = standing()
        sent: dict[str, tuple[str, str]] = {}
        statuses: dict[str, int] = {}
        cookies: list[str] = []
        devtools = context.new_cdp_session(page)  # it sees responses that the page itself may not read
        devtools.on(
            "Network.requestWillBeSent", lambda told: sent.update({told["requestId"]: (told["request"]["method"], told["request"]["url"])})
        )
        devtools.on("Network.responseReceivedExtraInfo", lambda told: statuses.update({told["requestId"]: told["statusCode"]}))
        devtools.on("Network.requestWillBeSentExtraInfo", lambda told: cookies.append(str(told["headers"])))
        devtools.send("Network.enable")
        page.goto(f"{elsewhere}/?to={server.url}&id={id}")
        said: dict[str, Any] = dict(page.evaluate("window.done"))
        page.wait_for_timeout(300)
    finally:
        context.close()
    assert len(said) == 11 and not {"loaded", "heard", 200, 201, 202, 204} & set(said.values()), said
    ours = [(*sent[id], status) for id, status in statuses.items() if sent[id][1].startswith(server.url)]
    assert len(ours) >= 8 and {status for _, _, status in ours} <= {401, 403, 405}, ours
    assert {url.removeprefix(server.url) for method, url, status in ours if method != "OPTIONS" and status == 403} >= {
        f"/api/conversations/{id}/fork",
        f"/api/conversations/{id}/fork?form",
        f"/api/chat/{id}/stop",
        "/api/session?img",
        "/api/tokens",
    }
    assert any("moot_session" in cookie for cookie in cookies), "the browser sent no cookie: this shows nothing"
    assert [[one["id"] for one in rows] for rows in standing()] == [[one["id"] for one in rows] for rows in before]
