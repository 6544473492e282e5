// Keeps the files of the page, so that it opens while the server can't be reached. Data of the API is never kept.
// Shows notifications while the page is closed.
const SHELL = 'moot-shell'
const FILES = 'moot-files'
/** What the page stores for notifications: its subscription, and texts in its language. */
const PUSH = { cache: 'moot-push', path: '/push' }
/** Safari withdraws the permission if a message shows nothing, even while the page is visible. */
const ALWAYS_SHOWS = /AppleWebKit/.test(navigator.userAgent) && !/Chrome\//.test(navigator.userAgent)
/** Addresses that are not views of the page. */
const OTHERS = /^\/(api|v1|docs|share)(\/|$)/

addEventListener('install', (event) => {
  skipWaiting()
  event.waitUntil(keepAll())
})

addEventListener('activate', (event) => event.waitUntil(clients.claim()))

addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(open(event.notification.data.path))
})

addEventListener('push', (event) => event.waitUntil(show(event.data)))

addEventListener('pushsubscriptionchange', (event) => event.waitUntil(renew(event)))

addEventListener('fetch', (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== location.origin || OTHERS.test(pathname)) return
  if (request.mode === 'navigate') event.respondWith(view(event))
  else if (pathname.startsWith('/assets/')) event.respondWith(asset(request))
  else if (pathname === '/boot.js' || pathname === '/favicon.svg') event.respondWith(fresh(request))
})

/** Open a view, in a tab of the page if there is one. A tab that already shows it is not loaded again. */
async function open(path) {
  const tabs = await clients.matchAll({ type: 'window' })
  const same = tabs.find((tab) => new URL(tab.url).pathname === path)
  const tab = same ?? tabs[0]
  if (!tab) return clients.openWindow(path)
  await tab.focus()
  return same ? same : tab.navigate(path)
}

/** Show a message of the server, unless the user sees the page. Tests are always shown. */
async function show(data) {
  const { event, title, body, details, path, tag } = data.json()
  const windows = await clients.matchAll({ type: 'window', includeUncontrolled: true })
  const isPage = ({ url, visibilityState }) => visibilityState === 'visible' && !OTHERS.test(new URL(url).pathname)
  const seen = event !== 'test' && windows.some(isPage)
  if (seen && !ALWAYS_SHOWS) return
  const text = details ? body : ((await pushStore())?.texts[event] ?? body)
  const look = { icon: '/icons/192.png', renotify: !seen, silent: seen }
  await registration.showNotification(title, { body: text, tag, data: { path }, ...look })
}

/** Give the server the subscription that replaces an expired one. */
async function renew({ newSubscription }) {
  const before = await pushStore()
  if (!before) return // the user has turned notifications off
  const options = { userVisibleOnly: true, applicationServerKey: before.key }
  const { endpoint, keys } = (newSubscription ?? (await registration.pushManager.subscribe(options))).toJSON()
  const body = { ...before.device, endpoint, p256dh: keys.p256dh, auth: keys.auth, replaces: before.endpoint }
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch('/api/push/devices', { method: 'POST', headers, body: JSON.stringify(body) })
  if (!answer.ok) return // the page tries again when it is opened
  await (await caches.open(PUSH.cache)).put(PUSH.path, new Response(JSON.stringify({ ...before, endpoint })))
}

async function pushStore() {
  return await (await caches.match(PUSH.path, { cacheName: PUSH.cache }))?.json()
}

/** Keep the page and the files that it names, so that it also opens before they are fetched again. */
async function keepAll() {
  const response = await fetch('/', { cache: 'no-store' })
  const html = await response.clone().text()
  await keep(response)
  const named = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+|\/boot\.js|\/favicon\.svg)"/g)].map((match) => match[1])
  await Promise.all([...new Set(named)].map((path) => asset(new Request(path)).catch(() => undefined)))
}

/** Return the page from the server, or the kept one if the server can't be reached. */
async function view(event) {
  try {
    const response = await fetch(event.request)
    event.waitUntil(keep(response.clone()).catch(() => undefined)) // the disk may be full
    return response
  } catch (error) {
    const kept = await (await caches.open(SHELL)).match('/')
    if (kept) return kept
    throw error
  }
}

/** Keep the page. A new build replaces the files of the one before. */
async function keep(response) {
  if (!response.ok || !response.headers.get('content-type')?.startsWith('text/html')) return
  const shell = await caches.open(SHELL)
  const [before, now] = [await (await shell.match('/'))?.text(), await response.clone().text()]
  if (before === now) return
  await caches.delete(FILES)
  await shell.put('/', response)
}

/** Return a file whose name contains a hash of its content. */
async function asset(request) {
  const kept = await found(request)
  if (kept) return kept
  const response = await fetch(request)
  if (response.ok) await put(request, response.clone())
  return response
}

/** Return a file from the server, or the kept one if the server can't be reached. */
async function fresh(request) {
  try {
    const response = await fetch(request)
    if (response.ok) await put(request, response.clone())
    return response
  } catch (error) {
    const kept = await found(request)
    if (kept) return kept
    throw error
  }
}

/** Keep a file. Without storage, or if the disk is full, the page is still served. */
async function put(request, response) {
  try {
    await (await caches.open(FILES)).put(request, response)
  } catch {
    // the file is fetched again the next time
  }
}

async function found(request) {
  try {
    return await (await caches.open(FILES)).match(request)
  } catch {
    return undefined // storage is blocked
  }
}
