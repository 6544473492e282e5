import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

/** Sums over completed responses. Money is in nano-dollars and excludes responses with an unknown price. */
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
  /** Time in ms that models worked, as far as known, and the output tokens produced in that time. */
  ms: number
  timed_output: number
  /** Sum of the times to the first token in ms, and the number of responses for which it is known. */
  first_ms: number
  firsts: number
  /** Sum of the input tokens of each response's largest model call. */
  contexts: number
  /** Mean input tokens of a response's largest model call. */
  context: number
  /** Mean time to the first token in ms. Null means unknown. */
  first: number | null
  /** Output tokens per second. */
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

export interface AuxiliaryCounts {
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
  asides: AuxiliaryCounts[]
  /** Completed responses that are not included in the sums yet. */
  uncounted: number
}

/** Fetch the usage of runs that started at the given time (ms) or later. */
export function useStats(since: number) {
  return useQuery({
    queryKey: ['stats', since],
    queryFn: ({ signal }) => api.get<Stats>('/stats', { query: { since }, signal }),
    placeholderData: keepPreviousData,
  })
}

export type Budget = components['schemas']['BudgetOut']

/** Fetch the user's budgets. */
export function useBudgets() {
  return useQuery({
    queryKey: ['budgets'],
    queryFn: ({ signal }) => api.get<Page<Budget>>('/stats/budgets', { signal }),
  })
}
