import { useEffect, useState, useSyncExternalStore } from 'react'

/** A request to show a message. */
export interface Aim {
  conversation: string
  message: string
  /** A counter, because the same message may be requested twice. */
  turn: number
}

let aimed: Aim | null = null
let turns = 0
const listeners = new Set<() => void>()

/** Request that the view of a conversation scrolls to a message. */
export function aim(conversation: string, message: string): void {
  turns += 1
  aimed = { conversation, message, turn: turns }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Return the requested message of a conversation: from a search, or from the URL fragment. */
export function useAim(conversation: string): Aim | null {
  const [linked] = useState<Aim | null>(() => {
    const message = decodeURIComponent(location.hash.slice(1))
    return message ? { conversation, message, turn: 0 } : null
  })
  const latest = useSyncExternalStore(subscribe, () => aimed)
  useEffect(
    () => () => {
      if (aimed?.conversation === conversation) aimed = null // the next visit starts at the bottom
    },
    [conversation],
  )
  return latest?.conversation === conversation ? latest : linked
}
