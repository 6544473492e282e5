import { useLocation } from 'wouter'
import type { Conversation } from '@/api/types'
import { useShortcut } from '@/keys/shortcuts'

type Named = Pick<Conversation, 'id' | 'client_id'>

/** The conversations in the order in which the list shows them; the list keeps it for the keys. */
let order: readonly Named[] = []

export function keepOrder(shown: readonly Named[]): void {
  order = shown
}

/** Keys that go from one conversation to the next without the list being looked at. */
export function useConversationKeys(): void {
  const [location, go] = useLocation()
  const step = (by: number) => {
    const here = /^\/c\/([^/]+)/.exec(location)?.[1]
    const at = order.findIndex(({ id, client_id }) => here === id || here === client_id)
    const next = order[at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + by))]
    if (next) go(`/c/${next.id}`)
  }
  useShortcut('Alt+ArrowDown', 'Next conversation', () => step(1), 'Conversations')
  useShortcut('Alt+ArrowUp', 'Previous conversation', () => step(-1), 'Conversations')
}
