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
  turn: number
  /** Move the focus to the messages. */
  focus: boolean
}

/** Return the messages with one put back before the message that `followed` it, or null if that one isn't among them. */
export function putBack(messages: readonly Message[], message: Message, followed: string): Message[] | null {
  if (messages.some(({ id }) => id === message.id)) return [...messages]
  const at = messages.findIndex(({ id }) => id === followed)
  return at < 0 ? null : [...messages.slice(0, at), message, ...messages.slice(at)]
}

/** Join the first messages with the latest ones. Return null while messages between them are missing. */
export function joined({ messages, newer }: Early, latest: readonly Message[]): Message[] | null {
  const known = new Set(latest.map(({ id }) => id))
  const at = messages.findIndex(({ id }) => known.has(id))
  if (at < 0) return newer === null ? [...messages, ...latest] : null
  return [...messages.slice(0, at), ...latest.slice(latest.findIndex(({ id }) => id === messages[at]?.id))]
}
