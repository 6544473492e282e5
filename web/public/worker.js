// Keeps the files of the page, so that it opens while the server can't be reached. Data of the API is never kept.
const SHELL = 'moot-shell'
const FILES = 'moot-files'
/** Addresses that are not views of the page. */
const OTHERS = /^\/(api|v1|docs|share)(\/|$)/

addEventListener('install', (event) => {
  skipWaiting()
  event.waitUntil(fetch('/', { cache: 'no-store' }).then(keep))
})

addEventListener('activate', (event) => event.waitUntil(clients.claim()))

addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(clients.openWindow(event.notification.data.path))
})

addEventListener('fetch', (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== location.origin || OTHERS.test(pathname)) return
  if (request.mode === 'navigate') event.respondWith(view(event))
  else if (pathname.startsWith('/assets/')) event.respondWith(asset(request))
  else if (pathname === '/boot.js' || pathname === '/favicon.svg') event.respondWith(fresh(request))
})

/** Return the page from the server, or the kept one if the server can't be reached. */
async function view(event) {
  try {
    const response = await fetch(event.request)
    event.waitUntil(keep(response.clone()))
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
  const files = await caches.open(FILES)
  const kept = await files.match(request)
  if (kept) return kept
  const response = await fetch(request)
  if (response.ok) await files.put(request, response.clone())
  return response
}

/** Return a file from the server, or the kept one if the server can't be reached. */
async function fresh(request) {
  const files = await caches.open(FILES)
  try {
    const response = await fetch(request)
    if (response.ok) await files.put(request, response.clone())
    return response
  } catch (error) {
    const kept = await files.match(request)
    if (kept) return kept
    throw error
  }
}
