/** What the server gives out, as far as these views read it. */

export interface Page<T> {
  data: T[]
  next_cursor: string | null
}

export type RunStatus = 'queued' | 'running' | 'waiting' | 'interrupted' | 'finished' | 'failed' | 'cancelled'

export interface Conversation {
  id: string
  title: string
  agent: string
  model: string
  project: string
  status: string
  message_count: number
  cost: number | null
  updated_at: number
  archived_at: number | null
  deleted_at: number | null
}
