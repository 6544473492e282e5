import { useEffect, useState, useSyncExternalStore } from 'react'

/** A message that somebody wants to be brought to. */
export interface Aim {
  conversation: string
  message: string
  /** Counts up: the same message may be wanted twice. */
  turn: number
}

let aimed: Aim | null = null
let turns = 0
const listeners = new Set<() => void>()

/** Whoever shows that conversation, now or next, goes to that message. */
export function aim(conversation: string, message: string): void {
  turns += 1
  aimed = { conversation, message, turn: turns }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The message of that conversation that is wanted: by a search, else by the address behind its `#`. */
export function useAim(conversation: string): Aim | null {
  const [linked] = useState<Aim | null>(() => {
    const message = decodeURIComponent(location.hash.slice(1))
    return message ? { conversation, message, turn: 0 } : null
  })
  const latest = useSyncExternalStore(subscribe, () => aimed)
  useEffect(
    () => () => {
      if (aimed?.conversation === conversation) aimed = null // whoever comes back wants the end
    },
    [conversation],
  )
  return latest?.conversation === conversation ? latest : linked
}
