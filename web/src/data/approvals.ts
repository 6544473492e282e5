import { useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import { approvals } from '@/api/conversations'
import type { Answer, Approval, Conversation, Page } from '@/api/types'

/** Every open approval of every conversation; looked at every three seconds. */
export function useApprovals() {
  return useQuery({
    queryKey: ['approvals', 'open'],
    queryFn: ({ signal }) => api.get<Page<Approval>>('/approvals', { query: { open: true, limit: 200 }, signal }),
    refetchInterval: 3_000,
  })
}

/** How many there are; 0 as long as nobody knows. */
export function useOpenCount(): number {
  return useApprovals().data?.data.length ?? 0
}

/** Gives answers; what is open is looked up anew behind each, whoever was first. */
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

/** The title of a conversation; empty as long as it is not known. */
export function useTitleOf(conversation: string): string {
  const { data } = useQuery({
    queryKey: ['conversations', 'one', conversation],
    queryFn: ({ signal }) => api.get<Conversation>(`/conversations/${conversation}`, { signal }),
  })
  return data ? data.title || 'Untitled' : ''
}
