"""Push notifications: the settings of the page, and the service worker, which gets messages through Chromium's debugger."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import CDPSession, Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import until
from browser.visits import PHONE, Visit, inaccessible

ENDPOINT = "https://push.invalid/send/hidden-in-the-endpoint"

SUBSCRIBED = """
    const known = (key) => ({
        options: { applicationServerKey: key },
        toJSON: () => ({ endpoint: '%s', keys: {
            p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
            auth: 'BTBZMqHH6r4Tts7J_aSIgg',
        } }),
        unsubscribe: async () => { sessionStorage.removeItem('subscribed'); return true },
    })
    PushManager.prototype.getSubscription = async () => sessionStorage.getItem('subscribed') ? known(new ArrayBuffer(0)) : null
    PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
        if (!userVisibleOnly || applicationServerKey.length !== 87) throw new Error('wrong options')
        sessionStorage.setItem('subscribed', 'yes')
        return known(new ArrayBuffer(0))
    }
"""
"""A browser that can reach its push service: Chromium can't do so in tests."""


def opened(visit: Visitor, **more: Any) -> tuple[Visit, Page]:
    """Open the settings in a browser that may notify the user and has the service worker."""
    tab = visit(worker=True, **more)
    tab.context.grant_permissions(["notifications"], origin=tab.origin)
    tab.page.add_init_script(SUBSCRIBED % ENDPOINT)
    tab.go("/settings/appearance")
    tab.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    return tab, tab.page


def turn_on(page: Page) -> None:
    page.get_by_role("button", name="Turn on for this device").click()
    expect(page.get_by_role("button", name="Turn off for this device")).to_be_visible()


class Pushes:
    """A way to deliver messages to the service worker while the page is open or closed."""

    def __init__(self, tab: Visit) -> None:
        self.tab = tab
        self.worker = tab.context.service_workers[0]
        self.session: CDPSession = tab.context.new_cdp_session(tab.page)
        found: list[str] = []
        updated = "ServiceWorker.workerRegistrationUpdated"
        self.session.on(updated, lambda event: found.extend(str(one["registrationId"]) for one in event["registrations"]))
        self.session.send("ServiceWorker.enable")
        while not found:
            tab.page.wait_for_timeout(20)
        self.registration = found[0]

    def deliver(self, **message: Any) -> None:
        data = json.dumps(
            {"title": "Release notes", "body": "from the server", "details": False, "path": "/c/1", "tag": "run-1", **message}
        )
        target = {"origin": f"{self.tab.origin}/", "registrationId": self.registration, "data": data}
        self.session.send("ServiceWorker.deliverPushMessage", target)

    def wait(self, *expected: tuple[str, str, str, str]) -> None:
        """Wait until exactly these notifications are shown: title, text, path and tag."""
        found = """async () => (await registration.getNotifications()).map(({ title, body, data, tag }) => [title, body, data.path, tag])"""
        until(self.tab.page, lambda: sorted(map(tuple, self.worker.evaluate(found))) == sorted(expected))


def test_a_device_is_turned_on_changed_tested_and_removed(visit: Visitor, server: Served, axe: str) -> None:
    tab, page = opened(visit)
    turn_on(page)
    (device,) = server.call("GET", "/api/push/devices")["data"]
    assert (device["service"], device["details"], len(device["events"])) == ("push.invalid", False, 3)
    assert device["name"] == "Chrome on Linux"
    page.get_by_role("checkbox", name="Show questions and answers").check()
    expect(page.get_by_role("checkbox", name="Show questions and answers")).to_be_checked()
    page.get_by_role("checkbox", name="Also when a run ends successfully").uncheck()
    expect(page.get_by_role("checkbox", name="Also when a run ends successfully")).not_to_be_checked()
    until(page, lambda: server.call("GET", "/api/push/devices")["data"][0]["events"] == ["run.failed", "approval.asked"])
    (changed,) = server.call("GET", "/api/push/devices")["data"]
    assert (changed["id"], changed["details"]) == (device["id"], True)
    page.get_by_role("button", name="Send a test to Chrome on Linux").click()
    expect(
        page.get_by_text("The test was not accepted. The server can't reach the push service. Could not fetch https://push.invalid:")
    ).to_be_visible()
    expect(page.get_by_text("1 attempt failed.")).to_be_visible()
    assert "hidden-in-the-endpoint" not in page.content()
    assert inaccessible(page, axe) == []
    tab.shot("push-desktop-light")
    page.reload()
    expect(page.get_by_text("(this device)")).to_be_visible()
    page.get_by_role("button", name="Remove Chrome on Linux").click()
    expect(page.get_by_role("button", name="Turn on for this device")).to_be_visible()
    assert server.call("GET", "/api/push/devices")["data"] == []
    assert page.evaluate("sessionStorage.getItem('subscribed')") is None


def test_the_settings_fit_on_a_phone(visit: Visitor, axe: str) -> None:
    tab, page = opened(visit, viewport=PHONE, theme="dark")
    turn_on(page)
    page.get_by_role("button", name="Send a test to").click()
    expect(page.get_by_text("1 attempt failed.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert inaccessible(page, axe) == []
    page.get_by_role("heading", name="Notifications").scroll_into_view_if_needed()
    tab.shot("push-phone-dark")


def test_a_device_stays_on_until_the_server_has_removed_it(visit: Visitor, server: Served) -> None:
    _, page = opened(visit, allowed=("net::ERR_FAILED",))
    turn_on(page)
    page.route("**/api/push/devices/*", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Turn off for this device").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Turn on for this device")).to_have_count(0)
    page.get_by_role("button", name="Turn off for this device").click()
    expect(page.get_by_role("button", name="Turn on for this device")).to_be_visible()
    assert server.call("GET", "/api/push/devices")["data"] == []


def test_a_device_removed_elsewhere_is_off_after_the_next_start(visit: Visitor, server: Served) -> None:
    _, page = opened(visit)
    turn_on(page)
    (device,) = server.call("GET", "/api/push/devices")["data"]
    server.call("DELETE", f"/api/push/devices/{device['id']}")
    page.reload()
    expect(page.get_by_role("button", name="Turn on for this device")).to_be_visible()
    page.wait_for_function("localStorage.getItem('moot.push') === '' && !sessionStorage.getItem('subscribed')")
    assert server.call("GET", "/api/push/devices")["data"] == []


def test_the_page_explains_why_notifications_are_not_available(visit: Visitor) -> None:
    tab = visit()
    page = tab.page
    page.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false })")
    tab.go("/settings/appearance")
    expect(page.get_by_text("Browsers require https, or localhost.")).to_be_visible()
    expect(page.get_by_role("button", name="Turn on for this device")).to_have_count(0)


def test_a_browser_without_a_push_service_says_so(visit: Visitor, server: Served) -> None:
    tab = visit(worker=True)
    page = tab.page
    tab.context.grant_permissions(["notifications"], origin=tab.origin)
    page.add_init_script(
        "PushManager.prototype.subscribe = async () => { throw new DOMException('push service not available', 'AbortError') }"
    )
    tab.go("/settings/appearance")
    page.get_by_role("button", name="Turn on for this device").click()
    expect(page.get_by_role("alert")).to_contain_text("could not subscribe to its push service")
    assert server.call("GET", "/api/push/devices")["data"] == []


def test_the_worker_shows_messages_only_while_no_window_is_visible(visit: Visitor) -> None:
    tab, page = opened(visit, locale="zh-CN")
    page.get_by_role("button", name="为此设备开启").click()
    expect(page.get_by_role("button", name="为此设备关闭")).to_be_visible()
    pushes = Pushes(tab)
    pushes.deliver(event="run.finished")
    pushes.deliver(event="test", title="moot", path="/", tag="test")
    tested = ("moot", "通知功能正常。", "/", "test")
    pushes.wait(tested)
    page.goto("about:blank")
    pushes.deliver(event="approval.asked")
    pushes.wait(tested, ("Release notes", "等待你答复", "/c/1", "run-1"))
    pushes.deliver(event="run.finished", body="All is well.", details=True)
    pushes.wait(tested, ("Release notes", "All is well.", "/c/1", "run-1"))
    tab.go("/settings/appearance")
    page.get_by_role("button", name="为此设备关闭").click()
    expect(page.get_by_role("button", name="为此设备开启")).to_be_visible()


def test_a_click_on_a_notification_opens_its_conversation(visit: Visitor) -> None:
    tab, page = opened(visit)
    pushes = Pushes(tab)
    page.goto("about:blank")
    pushes.deliver(event="run.failed")
    pushes.wait(("Release notes", "from the server", "/c/1", "run-1"))
    path = pushes.worker.evaluate(
        """async () => {
            const [notification] = await registration.getNotifications()
            const opened = new Promise((resolve) => { clients.openWindow = async (path) => resolve(path) })
            dispatchEvent(new NotificationEvent('notificationclick', { notification }))
            return opened
        }"""
    )
    assert path == "/c/1", "a browser opens windows only after a real click"
    pushes.wait()


def test_a_renewed_subscription_replaces_the_old_one(visit: Visitor, server: Served) -> None:
    tab, page = opened(visit)
    turn_on(page)
    (device,) = server.call("GET", "/api/push/devices")["data"]
    tab.context.service_workers[0].evaluate(
        """() => {
            const keys = {
                p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
                auth: 'AAAAAAAAAAAAAAAAAAAAAA',
            }
            const event = new ExtendableEvent('pushsubscriptionchange')
            event.newSubscription = { toJSON: () => ({ endpoint: 'https://renewed.invalid/send/1', keys }) }
            dispatchEvent(event)
        }"""
    )
    until(page, lambda: server.call("GET", "/api/push/devices")["data"][0]["service"] == "renewed.invalid")
    (renewed,) = server.call("GET", "/api/push/devices")["data"]
    assert (renewed["id"], renewed["name"]) == (device["id"], device["name"])
    server.call("DELETE", f"/api/push/devices/{device['id']}")
