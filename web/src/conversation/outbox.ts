import type { Part } from '@/api/types'
import type { Extra } from '@/conversation/transport'

/** A prompt that the server has not acknowledged. */
export interface Unsent {
  /** The id of the message, also on the server: a prompt that arrives twice is stored once. */
  id: string
  conversation: string
  parts: Part[]
  extra: Extra
  /** During a run: queue the prompt, or deliver it at the next step. */
  delivery?: 'queue' | 'steer'
  /** The message that this one replaces. */
  edits?: string
  at: number
  /** Why the last attempt failed. */
  reason?: string
}

const KEPT = 'moot.outbox.'

/** The signed-in user. Empty until the session is loaded. */
let user = ''
let entries: readonly Unsent[] = []
const listeners = new Set<() => void>()

function set(value: readonly Unsent[]): void {
  entries = value
  for (const listener of listeners) listener()
}

function keyOf(entry: Unsent): string {
  return `${KEPT}${[user, entry.conversation, entry.id].map(encodeURIComponent).join('/')}`
}

function stored(): Unsent[] {
  try {
    const prefix = `${KEPT}${encodeURIComponent(user)}/`
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(prefix))
      .flatMap((key) => parsed(localStorage.getItem(key)))
      .sort((one, other) => one.at - other.at)
  } catch {
    return [] // storage is unavailable
  }
}

function parsed(value: string | null): Unsent[] {
  try {
    const entry = JSON.parse(value ?? 'null') as Unsent | null
    return entry && Array.isArray(entry.parts) ? [entry] : []
  } catch {
    return []
  }
}

/** Store a prompt until it is acknowledged. Return false if it is only kept in this tab, because the browser's storage is full or off. */
function put(entry: Unsent): boolean {
  set([...entries.filter((one) => one.id !== entry.id), entry].sort((one, other) => one.at - other.at))
  try {
    localStorage.setItem(keyOf(entry), JSON.stringify(entry))
    return true
  } catch {
    return false
  }
}

function remove(id: string): void {
  const found = entries.find((one) => one.id === id)
  if (!found) return
  set(entries.filter((one) => one !== found))
  try {
    localStorage.removeItem(keyOf(found))
  } catch {
    // storage is unavailable
  }
}

/** Show the prompts of this user. Prompts written before the user was known are assigned to the user. */
function own(id: string): void {
  if (id === user) return
  const early = user ? [] : entries
  for (const entry of early) remove(entry.id)
  user = id
  set(stored())
  for (const entry of early) put(entry)
}

if (typeof addEventListener === 'function')
  addEventListener('storage', ({ key }) => {
    if (user && (key === null || key.startsWith(KEPT))) set(stored()) // another tab sent or removed one
  })

/** Prompts that the server has not acknowledged, oldest first. The browser's storage keeps them by user and conversation. */
export const outbox = {
  put,
  remove,
  own,
  get: (): readonly Unsent[] => entries,
  of: (conversation: string): Unsent[] => entries.filter((one) => one.conversation === conversation),
  subscribe(listener: () => void): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
}

/** Return the text of a prompt, or the names of its files. */
export function wordsOf({ parts }: Unsent): string {
  const words = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  return words || parts.flatMap((part) => (part.type === 'file' ? [part.filename ?? part.mediaType] : [])).join(', ')
}
