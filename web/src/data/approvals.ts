import { useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { Page } from '@/data/types'

export interface OpenApproval {
  id: string
  run: string
  conversation: string
  title: string
  tool: string
  asked_at: number
}

/** Every open approval of every conversation, oldest first; looked at every three seconds. */
export function useApprovals() {
  return useQuery({
    queryKey: ['approvals', 'open'],
    queryFn: ({ signal }) => api.get<Page<OpenApproval>>('/approvals', { query: { open: true, limit: 200 }, signal }),
    refetchInterval: 3_000,
  })
}

export function useOpenApprovals(): readonly OpenApproval[] {
  return useApprovals().data?.data ?? []
}
