import type { UIMessage } from 'ai'

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

export interface Page<T> {
  data: T[]
  next_cursor: string | null
}

export interface Usage {
  input?: number
  output?: number
  cache_read?: number
  cache_write?: number
  reasoning?: number
}

export type RunStatus = 'queued' | 'running' | 'waiting' | 'interrupted' | 'finished' | 'failed' | 'cancelled'

export interface Grant {
  tool: string
  match: string
  at: number
  by: string
}

/** A conversation as lists and its own route give it. Times are milliseconds, money nano-dollars. */
export interface Conversation {
  id: string
  no: number
  client_id?: string | null
  title: string
  title_source: string
  agent: string
  model: string
  project: string
  directory: string
  status: RunStatus | 'pending' | 'standby'
  message_count: number
  usage: Usage
  cost: number | null
  unpriced_runs: number
  context_usage: number | null
  grants: Grant[]
  settings: Record<string, Json>
  head: string | null
  forked_from: string | null
  parent: string | null
  created_at: number
  updated_at: number
  archived_at: number | null
  deleted_at: number | null
  last_seq?: number
}

export interface StepFacts {
  step: number
  model: string
  finish_reason: string
  usage: Usage
  cost: number | null
  ms: number
}

/** What moot knows of a message beside its parts. */
export interface Metadata {
  agent?: string
  model?: string
  provider?: string
  finish_reason?: string
  steps?: StepFacts[]
  note?: string
  context_usage?: number
  needs_approval?: boolean
}

/** `GET …/messages` adds its place and state to the AI SDK's shape; a message that streams has only the latter. */
export interface Message extends UIMessage<Metadata> {
  /** Its id in the store; none before it has been read from there. */
  stored_id?: string
  status?: 'streaming' | 'finished' | 'failed' | 'cancelled' | 'interrupted'
  parent?: string | null
  run?: string | null
  created_at?: number
}

export type Part = Message['parts'][number]

export interface Node {
  no: number
  id: string
  parent: string | null
  role: 'system' | 'user' | 'assistant'
  status: string
  line: string
  created_at: number
  run: string | null
  shown: boolean
  deleted: boolean
}

export interface Failure {
  message: string
  fix?: string | null
  code?: string
}

export interface Run {
  id: string
  conversation: string
  message: string
  model: string
  agent: string
  status: RunStatus
  error: Failure | null
  usage: Usage
  cost: number | null
  created_at: number
  started_at: number | null
  ended_at: number | null
}

/** A run that waits for its turn, with what was said. */
export interface Queued extends Run {
  prompt: Message | null
}

export interface AskedPart {
  text: string
  action: 'allow' | 'ask' | 'deny'
  why: string
  patterns: string[]
  always: boolean
  within: boolean
}

export interface Question {
  header: string
  question?: string
  text?: string
  options: { label: string; description: string }[]
  multiple: boolean
}

export interface Approval {
  id: string
  run: string
  conversation: string
  tool_call: string
  tool: string
  input: Json
  asked_at: number
  expires_at: number | null
  answer: { approved: boolean; option: string; reason: string } | null
  questions: Question[] | null
  parts: AskedPart[]
  /** The narrowest patterns that together cover it; empty: it can be allowed only once. */
  lasting: string[]
  always: boolean
}

export interface Answer {
  approved: boolean
  option?: 'once' | 'conversation' | 'always'
  reason?: string
  patterns?: string[]
  arguments?: Json
  value?: Json
}

/** An event of the log, as `/events` sends it. */
export interface LogEvent {
  seq: number
  at: number
  run: string | null
  kind: string
  exchange: string | null
  chunks: ({ type: string } & Record<string, Json>)[]
  phase?: string
  key?: string
  raw?: string
  raw_base64?: string
}

/** What a large output becomes on the wire. */
export interface Excerpt {
  type: 'excerpt'
  head?: Json
  tail?: Json
  size: number
  rows?: number
  mediaType: string
  url?: string
}
