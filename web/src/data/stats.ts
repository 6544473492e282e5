import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'

/** Sums over answers that are over; money is nano-dollars of those whose price is known. */
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
  steps: number
  /** That models worked, where it is known, and the output tokens of that time. */
  ms: number
  timed_output: number
  /** Sum of the times to the first that was shown, and of how many answers it is known. */
  first_ms: number
  firsts: number
  /** Sum of the input tokens of each answer’s largest model call. */
  contexts: number
  /** Mean input tokens of an answer’s largest model call. */
  context: number
  /** Mean ms to the first that was shown; null = not known. */
  first: number | null
  /** Output tokens a second. */
  rate: number | null
}

export interface Group extends Counts {
  /** A day as `YYYY-MM-DD`, a model, or an agent. */
  name: string
}

export interface ToolCounts {
  name: string
  calls: number
  failed: number
  denied: number
  ms: number
  timed: number
}

export interface AsideCounts {
  name: string
  calls: number
  cost: number
  unpriced: number
}

export interface Stats {
  conversations: number
  messages: number
  total: Counts
  days: Group[]
  models: Group[]
  agents: Group[]
  projects: Group[]
  tools: ToolCounts[]
  errors: { name: string; runs: number }[]
  asides: AsideCounts[]
  /** Answers that are over and not counted yet: the sums are without them. */
  uncounted: number
}

/** What runs took that began at that instant (ms) or later. */
export function useStats(since: number) {
  return useQuery({
    queryKey: ['stats', since],
    queryFn: ({ signal }) => api.get<Stats>('/stats', { query: { since }, signal }),
    placeholderData: keepPreviousData,
  })
}
