import type { UIMessage } from 'ai'
import type { components } from '@/api/schema'

/** API types, generated from `docs/openapi.json` by `npm run types`. */
type Schemas = components['schemas']

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

export type Grant = Schemas['GrantOut']

/** A conversation as returned by the API. Times are in milliseconds, money in nano-dollars. */
export type Conversation = Schemas['ConversationOut']

/** What an undo or redo does, or has done. */
export type UndoPlan = Schemas['UndoOut']
export type UndoPart = UndoPlan['part']

/** The files that runs have changed. */
export type Changes = Schemas['ChangesOut']
export type FileDiff = Schemas['FileDiffOut']

/** A conversation with its sub-agents' conversations. */
export type Relative = Schemas['RelativeOut']

export interface StepFacts {
  step: number
  model: string
  finish_reason: string
  usage: Usage
  cost: number | null
  ms: number
}

/** Metadata that moot stores with a message. */
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

/** A message of the AI SDK with its position in the tree and its status. Only messages from `GET …/messages` have a position. */
export interface Message extends UIMessage<Metadata> {
  /** The message's id on the server. Unset until the message has been loaded from the server. */
  stored_id?: string
  status?: 'streaming' | 'finished' | 'failed' | 'cancelled' | 'interrupted'
  parent?: string | null
  run?: string | null
  created_at?: number
}

export type Part = Message['parts'][number]

export type Node = Schemas['NodeOut']

export interface Failure {
  message: string
  fix?: string | null
  code?: string
}

export type Run = Omit<Schemas['RunOut'], 'error'> & { error: Failure | null }

/** A queued run with its prompt. */
export interface Queued extends Run {
  prompt: Message | null
}

/** Prompts that no model has read yet. */
export interface Queue {
  /** Queued runs, next one first. */
  runs: readonly Queued[]
  /** Messages that the live run receives at its next step, oldest first. */
  steered: readonly Message[]
}

export type AskedPart = Schemas['AskedPartOut']

export interface Question {
  header: string
  question?: string
  text?: string
  options: { label: string; description: string }[]
  multiple: boolean
  /** True if only the options are accepted, no other text. */
  choices_only?: boolean
  /** Name of the argument that the text shows, if the user may change the text. */
  edits?: string
}

export type Approval = Omit<Schemas['ApprovalOut'], 'input' | 'questions'> & {
  input: Json
  questions: Question[] | null
}

export type Answer = Pick<Schemas['AnswerIn'], 'approved'> & Partial<Schemas['AnswerIn']>

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

/** A large output, shortened by the server. */
export interface Excerpt {
  type: 'excerpt'
  head?: Json
  tail?: Json
  size: number
  rows?: number
  mediaType: string
  url?: string
}
