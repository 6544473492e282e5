import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'

/** Sums over runs that have ended; money is nano-dollars of those whose price is known. */
export interface Counts {
  runs: number
  failed: number
  input: number
  output: number
  cache_read: number
  cache_write: number
  reasoning: number
  cost: number
  unpriced_runs: number
}

export interface Group extends Counts {
  /** A day as `YYYY-MM-DD`, a model, or an agent. */
  name: string
}

export interface Stats {
  conversations: number
  messages: number
  total: Counts
  days: Group[]
  models: Group[]
  agents: Group[]
}

/** What runs took that began at that instant (ms) or later. */
export function useStats(since: number) {
  return useQuery({
    queryKey: ['stats', since],
    queryFn: ({ signal }) => api.get<Stats>('/stats', { query: { since }, signal }),
    placeholderData: keepPreviousData,
  })
}
