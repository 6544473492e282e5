import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

/** The time zone of the browser, by which days are counted. */
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

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
  /** By the hour of the day, from `00` to `23`, without hours that have no responses. */
  hours_of_day: Group[]
  /** Completed responses that are not included in the sums yet. */
  uncounted: number
}

/** Fetch the usage of runs that started at the given time (ms) or later, in all groups or only in some. */
export function useStats(since: number, by: readonly string[] = []) {
  return useQuery({
    queryKey: ['stats', since, by],
    queryFn: ({ signal }) => api.get<Stats>('/stats', { query: { since, by, tz: ZONE }, signal }),
    placeholderData: keepPreviousData,
  })
}

export type UsageWindow = components['schemas']['WindowOut']

/** Fetch the usage in the current periods that subscriptions limit. */
export function useWindows() {
  return useQuery({
    queryKey: ['stats', 'windows'],
    queryFn: ({ signal }) => api.get<components['schemas']['WindowsOut']>('/stats/windows', { signal }),
    staleTime: 30_000,
  })
}

const YEAR = 371 * 86_400_000

export type ActivityDay = components['schemas']['ActivityOut']
export type Edit = components['schemas']['EditOut']

/** Fetch the totals of each day of the last 53 weeks, oldest first. Days without responses are missing. */
export function useActivity() {
  return useQuery({
    queryKey: ['stats', 'activity'],
    queryFn: async ({ signal }) => {
      const query = { from: Math.max(0, Date.now() - YEAR), tz: ZONE }
      return (await api.get<Page<ActivityDay>>('/stats/activity', { query, signal })).data
    },
    staleTime: 30_000,
  })
}

/** Fetch the newest changes of files by agents. */
export function useEdits(limit: number) {
  return useQuery({
    queryKey: ['stats', 'edits', limit],
    queryFn: ({ signal }) => api.get<components['schemas']['EditsOut']>('/edits', { query: { limit }, signal }),
    staleTime: 30_000,
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
