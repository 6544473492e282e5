import { useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import { conversations } from '@/api/conversations'
import type { Relative } from '@/api/types'

/** ms between fetches of the tree while one of its agents has not finished. */
const POLL = 2_000

/** Fetch the sub-agents of a conversation as a tree. With `live`, their number and state may still change. */
export function useChildren(conversation: string, live: boolean): readonly Relative[] {
  const { data } = useQuery({
    queryKey: ['conversations', 'children', conversation],
    queryFn: ({ signal }) =>
      api.get<Relative>(`/conversations/${encodeURIComponent(conversation)}/children`, { signal }),
    enabled: conversation !== '',
    refetchInterval: ({ state }) => (live || state.data?.children.some(isActive) ? POLL : false),
  })
  return data?.children ?? []
}

function isActive(relative: Relative): boolean {
  return relative.status === 'running' || relative.status === 'pending' || relative.children.some(isActive)
}

/** Matches ids assigned by the server, which all sub-agents have. A conversation with an id made by the page may not exist yet. */
const OURS = /^[0-9a-f]{8}-[0-9a-f]{4}-7/

/** Return the listed conversation to which a sub-agent's conversation belongs. Empty while loading, and for ids made by the page. */
export function useRoot(conversation: string): string {
  const { data } = useQuery({
    queryKey: ['conversations', 'root', conversation],
    queryFn: async ({ signal }) => {
      let found = await conversations.get(conversation, signal)
      while (found.parent) found = await conversations.get(found.parent, signal)
      return found.id
    },
    enabled: OURS.test(conversation),
    retry: false,
  })
  return data ?? ''
}
