import { useLocation } from 'wouter'
import { useShortcut } from '@/keys/shortcuts'

/** The conversations in the order in which the list shows them; the list keeps it for the keys. */
let order: readonly string[] = []

export function keepOrder(ids: readonly string[]): void {
  order = ids
}

/** Keys that go from one conversation to the next without the list being looked at. */
export function useConversationKeys(): void {
  const [location, go] = useLocation()
  const step = (by: number) => {
    const at = order.indexOf(/^\/c\/([^/]+)/.exec(location)?.[1] ?? '')
    const id = order[at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + by))]
    if (id) go(`/c/${id}`)
  }
  useShortcut('Alt+ArrowDown', 'Next conversation', () => step(1), 'Conversations')
  useShortcut('Alt+ArrowUp', 'Previous conversation', () => step(-1), 'Conversations')
}
