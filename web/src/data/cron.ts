import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { Page } from '@/api/types'
import { pause } from '@/data/polling'
import { text } from '@/text'
import { notify } from '@/ui/toasts'

/** A run of a cron job, or a due time at which it did not run. */
export interface JobRun {
  at: number
  status: string
  conversation: string | null
  /** Cost in nano-dollars. Null if unknown. */
  cost: number | null
  reason: string
}

export interface Job {
  name: string
  prompt: string
  cron: string
  /** Interval in seconds. 0 if the job has another kind of schedule. */
  every: number
  at: string
  tz: string
  /** Where answers are delivered: `log`, `webhook:NAME`, or `channel:NAME:PLACE`. */
  deliver: string
  paused: boolean
  /** True if the job is defined in the configuration file. */
  configured: boolean
  /** Why the job is ignored. Empty if it is not. */
  error: string
  next: number | null
  last: JobRun | null
}

export interface NewJob {
  name: string
  prompt: string
  cron?: string
  every?: string
  at?: string
  tz: string
  deliver: string
}

const POLL = 10_000

/** Fetch the jobs, and fetch them again when a run may have started or ended. */
export function useJobs() {
  return useQuery({
    queryKey: ['cron'],
    queryFn: ({ signal }) => api.get<Page<Job>>('/cron', { signal }),
    refetchInterval: () => pause(POLL), // jobs run in the background
  })
}

export function useJobActions() {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['cron'] })
  const path = (name: string) => `/cron/${encodeURIComponent(name)}`
  return {
    add: useMutation({ mutationFn: (job: NewJob) => api.post<Job>('/cron', job), onSettled }),
    run: useMutation({
      mutationFn: (name: string) => api.post<JobRun>(`${path(name)}/run`),
      onSuccess: () => notify(text.cron.started),
      onSettled,
    }),
    pause: useMutation({
      mutationFn: ({ name, paused }: Job) => api.post<Job>(`${path(name)}/${paused ? 'resume' : 'pause'}`),
      onSettled,
    }),
    remove: useMutation({
      mutationFn: (name: string) => api.delete(path(name)),
      onSuccess: () => notify(text.cron.removed),
      onSettled,
    }),
  }
}
