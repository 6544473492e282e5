import { useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import { approvals } from '@/api/conversations'
import type { Answer, Approval, Conversation, Page } from '@/api/types'
import { text } from '@/text'

/** Fetch the open approvals of all conversations, every three seconds. */
export function useApprovals() {
  return useQuery({
    queryKey: ['approvals', 'open'],
    queryFn: ({ signal }) => api.get<Page<Approval>>('/approvals', { query: { open: true, limit: 200 }, signal }),
    refetchInterval: 3_000,
  })
}

/** Return the number of open approvals, 0 while loading. */
export function useOpenCount(): number {
  return useApprovals().data?.data.length ?? 0
}

/** Submit an answer and refreshes the open approvals, even if it was already answered elsewhere. */
export function useAnswer() {
  const client = useQueryClient()
  return async (id: string, answer: Answer) => {
    try {
      await approvals.answer(id, answer)
    } finally {
      await client.invalidateQueries({ queryKey: ['approvals'] })
    }
  }
}

/** Return the title of a conversation. Empty while loading. */
export function useTitleOf(conversation: string): string {
  const { data } = useQuery({
    queryKey: ['conversations', 'one', conversation],
    queryFn: ({ signal }) => api.get<Conversation>(`/conversations/${conversation}`, { signal }),
  })
  return data ? data.title || text.common.untitled : ''
}
