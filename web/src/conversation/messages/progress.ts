import type { Part } from '@/api/types'
import { callOf, isTool } from '@/conversation/tools/call'
import { text } from '@/text'

/** A notice about the run that is not part of its message. */
export type Notice = { status: 'queued' } | { status: 'retrying'; reason: string; until: number }

/** What a response waits for. */
export interface Wait {
  label: string
  /** When the wait ends, in ms. Null if that is unknown. */
  until: number | null
  /** Return the words after the label, with the remaining time. */
  countdown: (time: string) => string
}

const words = text.progress

/** Return the notice in the data of a `data-status` chunk, or null if it has another form. */
export function noticeOf(data: unknown): Notice | null {
  const given = (data && typeof data === 'object' ? data : {}) as Record<string, unknown>
  if (given.status === 'queued') return { status: 'queued' }
  if (given.status !== 'retrying' || typeof given.until !== 'number') return null
  return { status: 'retrying', reason: String(given.reason), until: given.until }
}

/** Return what a response with these parts waits for, or null if it is being written or waits for the user. */
export function waitOf(parts: readonly Part[], notice: Notice | null, now: number): Wait | null {
  const waiting = (label: string): Wait => ({ label, until: null, countdown: () => '' })
  if (!parts.length && notice?.status === 'queued') return waiting(words.queued)
  if (notice?.status === 'retrying' && notice.until > now)
    return { label: words.retrying[notice.reason] ?? words.failed, until: notice.until, countdown: words.nextTry }
  const last = parts.at(-1)
  if (last && 'state' in last && (last.state === 'streaming' || last.state === 'input-streaming')) return null
  const reset = last?.type === 'data-note' ? untilIn(last) : 0
  if (reset > now) return { label: words.limited, until: reset, countdown: words.continues }
  const calls = parts.filter(isTool).map(callOf)
  if (calls.some((call) => call.state === 'asked')) return null
  const running = calls.filter((call) => !call.over)
  const [first] = running
  if (!first) return waiting(words.model)
  return waiting(
    running.length > 1 ? words.tools(running.length) : (words.tool[first.name] ?? words.running(first.name)),
  )
}

function untilIn(part: Part): number {
  const data = 'data' in part ? (part.data as { until?: unknown } | null) : null
  return typeof data?.until === 'number' ? data.until : 0
}
