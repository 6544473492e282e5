import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, Problem } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'
import { pushDevice, rememberPushDevice } from '@/app/notifications'
import { text } from '@/text'
import { notify } from '@/ui/toasts'

/** A browser that gets notifications while moot is closed. */
export type Device = components['schemas']['DeviceOut']

/** What this device wants to get. */
export interface PushChoices {
  /** Also when a run ends without an error. */
  ends: boolean
  /** Also what is asked or answered. */
  details: boolean
}

export const DEFAULT_CHOICES: PushChoices = { ends: true, details: false }

/** Where the service worker reads what it can't ask the page. */
const STORED = { cache: 'moot-push', path: '/push' }

interface Stored {
  key: string
  endpoint: string
  /** The device as it was sent to the server, without its subscription. */
  device: { name: string; events: string[]; details: boolean }
  /** Texts in the language of the page, by event. */
  texts: Record<string, string>
}

/** Return why this browser can't get notifications while moot is closed, or an empty text. */
export function pushProblem(): string {
  if (!isSecureContext) return text.push.insecure
  if (!('serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window))
    return text.push.unsupported
  return Notification.permission === 'denied' ? text.notifications.blocked : ''
}

export function choicesOf(device: Device): PushChoices {
  return { ends: device.events.includes('run.finished'), details: device.details }
}

/** Name the browser and its system, for the list of devices. */
export function deviceName(agent: string): string {
  const found = (names: readonly [pattern: RegExp, name: string][]) => names.find(([pattern]) => pattern.test(agent))
  const browser = found([
    [/Edg/, 'Edge'],
    [/OPR\//, 'Opera'],
    [/Firefox|FxiOS/, 'Firefox'],
    [/Chrome|CriOS/, 'Chrome'],
    [/Safari/, 'Safari'],
  ])
  const system = found([
    [/Android/, 'Android'],
    [/iPhone/, 'iPhone'],
    [/iPad/, 'iPad'],
    [/Windows/, 'Windows'],
    [/Mac OS/, 'macOS'],
    [/CrOS/, 'ChromeOS'],
    [/Linux/, 'Linux'],
  ])
  return text.push.device(browser?.[1] ?? text.push.browser, system?.[1] ?? text.common.unknown)
}

/** Subscribe this browser, or change its choices. The browser may ask the user for permission, so call this after a click. */
export async function turnOnPush(choices: PushChoices): Promise<Device> {
  if ((await Notification.requestPermission()) !== 'granted') throw new Error(text.push.denied)
  const { key } = await api.get<{ key: string }>('/push/key')
  return await register(await subscribe(key), key, choices)
}

/**
 * Unsubscribe this browser, and remove it from the server. The page shows the device as off only after both,
 * so a failed request can be repeated.
 */
export async function turnOffPush(): Promise<void> {
  const id = pushDevice()
  await unsubscribe()
  if (id)
    await api.delete(`/push/devices/${encodeURIComponent(id)}`).catch((error: unknown) => {
      if (!(error instanceof Problem && error.status === 404)) throw error // otherwise it was removed elsewhere
    })
  rememberPushDevice('')
}

/** Compare this browser's subscription with the server. The browser may have renewed it, or another device may have removed it. */
export async function checkPush(): Promise<void> {
  const id = pushDevice()
  const device = (await api.get<Page<Device>>('/push/devices')).data.find((one) => one.id === id)
  const subscription = await (await navigator.serviceWorker?.getRegistration())?.pushManager.getSubscription()
  if (!device) await unsubscribe().then(() => rememberPushDevice(''))
  else if (!subscription) await turnOffPush()
  else if (subscription.toJSON().endpoint === (await stored())?.endpoint) await keep({ texts: textsOfEvents() })
  else await register(subscription, (await api.get<{ key: string }>('/push/key')).key, choicesOf(device))
}

async function subscribe(key: string): Promise<PushSubscription> {
  try {
    await navigator.serviceWorker.register('/worker.js')
    const { pushManager } = await navigator.serviceWorker.ready
    const known = await pushManager.getSubscription()
    if (known && keyOf(known) === key) return known
    await known?.unsubscribe() // it belongs to another key, so messages of this server are refused
    return await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  } catch (error) {
    throw new Error(text.push.notSubscribed(error instanceof Error ? error.message : String(error)))
  }
}

/** Return the server's key of a subscription in base64url. */
function keyOf({ options }: PushSubscription): string {
  const bytes = new Uint8Array(options.applicationServerKey ?? new ArrayBuffer(0))
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

async function register(subscription: PushSubscription, key: string, choices: PushChoices): Promise<Device> {
  const { endpoint = '', keys = {} } = subscription.toJSON()
  const device = {
    name: deviceName(navigator.userAgent),
    events: [...(choices.ends ? ['run.finished'] : []), 'run.failed', 'approval.asked'],
    details: choices.details,
  }
  const body = { ...device, endpoint, p256dh: keys.p256dh, auth: keys.auth, replaces: (await stored())?.endpoint ?? '' }
  const made = await api.post<Device>('/push/devices', body)
  await keep({ key, endpoint, device, texts: textsOfEvents() })
  rememberPushDevice(made.id)
  return made
}

async function stored(): Promise<Partial<Stored> | undefined> {
  const response = await caches.match(STORED.path, { cacheName: STORED.cache })
  return (await response?.json()) as Partial<Stored> | undefined
}

/** Keep values for the service worker, in addition to those that were kept before. */
async function keep(values: Partial<Stored>): Promise<void> {
  const all = { ...(await stored()), ...values }
  await (await caches.open(STORED.cache)).put(STORED.path, new Response(JSON.stringify(all)))
}

function textsOfEvents(): Record<string, string> {
  const { finished, failed, waiting } = text.notifications.states
  return {
    'run.finished': finished ?? '',
    'run.failed': failed ?? '',
    'approval.asked': waiting ?? '',
    test: text.push.works,
  }
}

async function unsubscribe(): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration()
  await (await registration?.pushManager?.getSubscription())?.unsubscribe()
  if ('caches' in window) await caches.delete(STORED.cache)
}

/** Fetch the user's devices. */
export function useDevices() {
  return useQuery({
    queryKey: ['push'],
    queryFn: ({ signal }) => api.get<Page<Device>>('/push/devices', { signal }),
  })
}

export function useDeviceActions() {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['push'] })
  const path = ({ id }: Device) => `/push/devices/${encodeURIComponent(id)}`
  return {
    turnOn: useMutation({ mutationFn: turnOnPush, onSettled }),
    turnOff: useMutation({ mutationFn: turnOffPush, onSettled }),
    remove: useMutation({
      mutationFn: (device: Device) => (device.id === pushDevice() ? turnOffPush() : api.delete(path(device))),
      onSettled,
    }),
    test: useMutation({
      mutationFn: (device: Device) => api.post<{ accepted: boolean; reason: string }>(`${path(device)}/test`),
      onSuccess: ({ accepted, reason }) =>
        accepted ? notify(text.push.tested) : notify(text.push.notSent(reason), { danger: true }),
      onSettled,
    }),
  }
}
