import { useSyncExternalStore } from 'react'

/** True if the last requests reached the server. */
let reached = true
/** Number of consecutive failed requests. A single one may only mean that the device has changed its network. */
let missed = 0
const listeners = new Set<() => void>()

/** Notify on every call, because `navigator.onLine` also changes by itself. */
function update(value: boolean): void {
  reached = value
  for (const listener of listeners) listener()
}

/** Record whether a request reached the server. */
export function noteReached(value: boolean): void {
  missed = value ? 0 : missed + 1
  if (value || missed > 1) update(value)
}

/** Call the listener when `isOnline` may have changed. Return a function that unsubscribes. */
export function subscribe(listener: () => void): () => void {
  const [on, off] = [() => update(true), () => update(false)]
  addEventListener('online', on)
  addEventListener('offline', off)
  listeners.add(listener)
  return () => {
    removeEventListener('online', on)
    removeEventListener('offline', off)
    listeners.delete(listener)
  }
}

/** Return the number of requests in a row that did not reach the server. */
export function missedRequests(): number {
  return missed
}

export function isOnline(): boolean {
  return reached && navigator.onLine
}

export function useOnline(): boolean {
  return useSyncExternalStore(subscribe, isOnline)
}
