import { useEffect, useState, useSyncExternalStore } from 'react'

/** A request to show a message. */
export interface ScrollRequest {
  conversation: string
  message: string
  /** A counter, because the same message may be requested twice. */
  turn: number
}

let request: ScrollRequest | null = null
let turns = 0
const listeners = new Set<() => void>()

/** Request that the view of a conversation scrolls to a message. */
export function requestScroll(conversation: string, message: string): void {
  turns += 1
  request = { conversation, message, turn: turns }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Return the requested message of a conversation: from a search, or from the URL fragment. */
export function useScrollRequest(conversation: string): ScrollRequest | null {
  const [linked] = useState<ScrollRequest | null>(() => {
    const message = decodeURIComponent(location.hash.slice(1))
    return message ? { conversation, message, turn: 0 } : null
  })
  const latest = useSyncExternalStore(subscribe, () => request)
  useEffect(
    () => () => {
      if (request?.conversation === conversation) request = null // the next visit starts at the bottom
    },
    [conversation],
  )
  return latest?.conversation === conversation ? latest : linked
}
