import { useEffect, useRef, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { isLost } from '@/api/client'
import { conversations, runs } from '@/api/conversations'
import { type LiveRun, useLiveRuns } from '@/data/conversations'
import { titleOf } from '@/lists/rows'
import { text } from '@/text'
import { notifyError } from '@/ui/toasts'

const KEY = 'moot.notifications'
const PUSH = 'moot.push'

/** State of the browser's notifications. `blocked` = the user has refused them in the browser. */
export type NotificationState = 'on' | 'off' | 'blocked' | 'unsupported'

const listeners = new Set<() => void>()

function stored(key: string): string {
  try {
    return localStorage.getItem(key) ?? ''
  } catch {
    return '' // storage is unavailable
  }
}

function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch (error) {
    notifyError(error)
  }
  for (const listener of listeners) listener()
}

/** Return the id of this browser among the devices that get notifications while moot is closed. Empty if it gets none. */
export function pushDevice(): string {
  return stored(PUSH)
}

export function rememberPushDevice(id: string): void {
  store(PUSH, id)
}

export function usePushDevice(): string {
  return useSyncExternalStore(subscribe, pushDevice)
}

/** Return whether the browser notifies the user about runs. */
export function notificationState(): NotificationState {
  if (!('Notification' in window)) return 'unsupported'
  if (Notification.permission === 'denied') return 'blocked'
  return Notification.permission === 'granted' && stored(KEY) === 'on' ? 'on' : 'off'
}

/** Turn notifications on or off. The browser may ask the user for permission. */
export async function turnNotifications(on: boolean): Promise<void> {
  if (on) await Notification.requestPermission()
  store(KEY, on ? 'on' : 'off')
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function useNotificationState(): NotificationState {
  return useSyncExternalStore(subscribe, notificationState)
}

/** Notify the user when a run asks for something or ends while the page is not in front. A hidden page leaves this to push notifications. */
export function useRunNotifications(): void {
  useEffect(() => {
    if (!pushDevice()) return
    const checked = import('@/data/push').then(({ checkPush }) => checkPush())
    checked.catch((error: unknown) => {
      if (!isLost(error)) notifyError(error) // without a connection, it is tried again at the next start
    })
  }, [])
  const isOn = useNotificationState() === 'on'
  const live = useLiveRuns(isOn)
  const known = useRef<ReadonlyMap<string, LiveRun> | null>(null)
  const [, go] = useLocation()
  useEffect(() => {
    if (!live) return
    const before = known.current
    const now = new Map(live.map((run) => [run.id, run]))
    known.current = now
    const visible = document.visibilityState === 'visible'
    if (!before || !isOn || (visible ? document.hasFocus() : pushDevice())) return
    const asking = live.filter(
      (run) => asks(run) && !(asks(before.get(run.id)) && before.get(run.id)?.last_seq === run.last_seq),
    )
    const ended = [...before.values()].filter((run) => !now.has(run.id) && run.parent_run === null)
    for (const run of [...asking, ...ended]) void show(run, go).catch(notifyError)
  }, [live, isOn, go])
}

function asks(run: LiveRun | undefined): boolean {
  return run?.status === 'waiting' && run.awaits === 'person'
}

async function show({ id, conversation }: LiveRun, go: (path: string) => void): Promise<void> {
  const [run, { title }] = await Promise.all([runs.get(id), conversations.get(conversation)])
  const body = text.notifications.states[run.status]
  if (!body) return // stopped by the user
  const path = `/c/${encodeURIComponent(conversation)}`
  const options = { body: run.error?.message ?? body, tag: id, icon: '/icons/192.png', data: { path } }
  try {
    const notification = new Notification(titleOf({ title }), options)
    notification.onclick = () => {
      focus()
      go(path)
      notification.close()
    }
  } catch {
    await (await navigator.serviceWorker.ready).showNotification(titleOf({ title }), options) // phones allow only this way
  }
}
