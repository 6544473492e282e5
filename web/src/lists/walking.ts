import { useLocation } from 'wouter'
import type { Conversation } from '@/api/types'
import { useShortcut } from '@/keys/shortcuts'
import { text } from '@/text'

export type Named = Pick<Conversation, 'id' | 'client_id'>

/** The conversations in list order, for the keyboard shortcuts. */
let order: readonly Named[] = []

export function keepOrder(shown: readonly Named[]): void {
  order = shown
}

/** Keyboard shortcuts for the next and previous conversation. */
export function useConversationKeys(): void {
  const [location, go] = useLocation()
  const step = (by: number) => {
    const here = /^\/c\/([^/]+)/.exec(location)?.[1]
    const at = order.findIndex(({ id, client_id }) => here === id || here === client_id)
    const next = order[at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + by))]
    if (next) go(`/c/${next.id}`)
  }
  useShortcut('Alt+ArrowDown', text.keys.nextConversation, () => step(1), text.keys.conversations)
  useShortcut('Alt+ArrowUp', text.keys.previousConversation, () => step(-1), text.keys.conversations)
}
