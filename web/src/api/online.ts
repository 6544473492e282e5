import { useSyncExternalStore } from 'react'

/** Whether the server can be reached, as far as the browser and the last requests know. */
let reached = true
/** Requests in a row that did not get through; one alone may be a change of networks. */
let missed = 0
const listeners = new Set<() => void>()

/** Told each time: what is shown hangs on the browser's word too, which changes by itself. */
function tell(value: boolean): void {
  reached = value
  for (const listener of listeners) listener()
}

/** Every request says whether it got through to the server. */
export function noteReached(value: boolean): void {
  missed = value ? 0 : missed + 1
  if (value || missed > 1) tell(value)
}

/** Calls the listener whenever `isOnline` may say something else; gives what ends that. */
export function subscribe(listener: () => void): () => void {
  const [on, off] = [() => tell(true), () => tell(false)]
  addEventListener('online', on)
  addEventListener('offline', off)
  listeners.add(listener)
  return () => {
    removeEventListener('online', on)
    removeEventListener('offline', off)
    listeners.delete(listener)
  }
}

export function isOnline(): boolean {
  return reached && navigator.onLine
}

export function useOnline(): boolean {
  return useSyncExternalStore(subscribe, isOnline)
}
