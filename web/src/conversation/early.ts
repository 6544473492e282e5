import type { Message } from '@/api/types'

/** The first messages of a conversation, shown while messages between them and the latest ones are not loaded. */
export interface Early {
  messages: Message[]
  /** The cursor of the next page. Null if there is none. */
  newer: string | null
}

/** A jump to an end of the conversation. The turn counts jumps, because the same end may be requested twice. */
export interface Jump {
  to: 'start' | 'latest'
  /** True if the list gets the focus. */
  focuses: boolean
  turn: number
}

/** Join the first messages with the latest ones. Return null while messages between them are missing. */
export function joined({ messages, newer }: Early, latest: readonly Message[]): Message[] | null {
  const known = new Set(latest.map(({ id }) => id))
  const at = messages.findIndex(({ id }) => known.has(id))
  if (at < 0) return newer === null ? [...messages, ...latest] : null
  return [...messages.slice(0, at), ...latest.slice(latest.findIndex(({ id }) => id === messages[at]?.id))]
}
