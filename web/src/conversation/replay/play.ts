import { readUIMessageStream, type UIMessageChunk } from 'ai'
import { isLost, Problem, send } from '@/api/client'
import { conversations } from '@/api/conversations'
import type { LogEvent, Message } from '@/api/types'
import type { Pace } from '@/conversation/replay/pace'
import { type Beat, framesOf, timeline } from '@/conversation/replay/timeline'

/** Number of messages that are loaded at a time. */
const PAGE = 80
/** ms before a message without stored times is shown. */
const UNTIMED = 600

/** The messages shown so far. `live` is the id of the one that is playing, or null. */
export interface Played {
  messages: Message[]
  live: string | null
}

/** Play the stored messages of a conversation from its start. Nothing is sent to a model. Return when all are shown or the clock is stopped. */
export async function play(conversation: string, pace: Pace, show: (played: Played) => void): Promise<void> {
  const messages: Message[] = []
  for await (const message of stored(conversation, pace.signal)) {
    const start = pace.now
    const beats = await beatsOf(conversation, message, pace.signal)
    const offset = Math.max(start, pace.now) // loading may have taken a while
    if (!beats.length) await pace.until(offset + UNTIMED)
    for await (const partial of partials(message, beats, pace, offset)) {
      if (pace.stopped) return
      show({ messages: [...messages, partial], live: message.id })
    }
    if (pace.stopped) return
    messages.push(message)
    show({ messages: [...messages], live: null })
  }
}

async function* stored(conversation: string, signal: AbortSignal): AsyncGenerator<Message> {
  let cursor: string | null = null
  do {
    const page: { messages: Message[]; newer: string | null } = await conversations.firstMessages(
      conversation,
      cursor,
      PAGE,
      signal,
    )
    yield* page.messages
    cursor = page.newer
  } while (cursor)
}

/** Return the chunks of a response with their times. Return none if they can't be loaded, because the message can be shown without them. */
async function beatsOf(conversation: string, message: Message, signal: AbortSignal): Promise<Beat<UIMessageChunk>[]> {
  const { role, run, status } = message
  if (role !== 'assistant' || !run || status === 'streaming' || status === 'interrupted') return [] // an open run's events don't end
  const at = `/conversations/${encodeURIComponent(conversation)}/replay`
  const headers = { 'x-ai-sdk-version': '7' }
  const query = { message: message.stored_id ?? message.id, speed: 0 }
  try {
    const [chunks, events] = await Promise.all([
      send('GET', at, undefined, { query, headers, signal }),
      send('GET', `/runs/${run}/events`, undefined, { signal }),
    ])
    const frames = framesOf(await chunks.text())
    return timeline(
      frames,
      framesOf(await events.text()).map(({ data }) => JSON.parse(data) as LogEvent),
    )
  } catch (error) {
    if (signal.aborted || error instanceof Problem || isLost(error)) return []
    throw error
  }
}

/** Yield the states of a response while its chunks arrive, each at its time. */
async function* partials(
  message: Message,
  beats: readonly Beat<UIMessageChunk>[],
  pace: Pace,
  offset: number,
): AsyncGenerator<Message> {
  if (!beats.length) return
  let next = 0
  const stream = new ReadableStream<UIMessageChunk>(
    {
      async pull(controller) {
        const beat = beats[next++]
        if (beat) await pace.until(offset + beat.time)
        if (beat && !pace.stopped) controller.enqueue(beat.chunk)
        else controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  const empty: Message = { id: message.id, role: 'assistant', parts: [] }
  for await (const partial of readUIMessageStream<Message>({ message: empty, stream }))
    yield { ...partial, id: message.id, stored_id: message.stored_id, run: message.run }
}
