import { DefaultChatTransport } from 'ai'
import { problemOf, reaching } from '@/api/client'
import type { Message } from '@/api/types'

/** Nothing came for so long (the server says something every 15 s): the connection is dead, whatever the browser thinks. */
const SILENCE = 40_000

/** What the browser says of a lost connection has this class; what the server says of a request has not. */
export class Lost extends TypeError {
  constructor(why: string) {
    super(`network: ${why}`) // the AI SDK knows a lost connection by the word
  }
}

/** Says of a request's body what it should become; set by whoever sends. */
export interface Extra {
  agent?: string
  model?: string
  on_busy?: 'queue' | 'steer' | 'interrupt'
  [name: string]: unknown
}

/** Talks to `/api/chat` as a client of AI SDK 7, sends only what is new, and tells a cut stream from one that ended. */
export function transport(): DefaultChatTransport<Message> {
  return new DefaultChatTransport<Message>({
    api: '/api/chat',
    credentials: 'same-origin',
    headers: { 'x-ai-sdk-version': '7' },
    fetch: checked as typeof fetch,
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => {
      const last = messages.at(-1)
      const message =
        trigger === 'submit-message' ? last && { id: last.id, role: last.role, parts: last.parts } : undefined
      return { body: { ...body, id, trigger, messageId, ...(message && { message }) } }
    },
  })
}

async function checked(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await reaching(input, init)
  if (!response.ok) throw await problemOf(response)
  if (!response.body || response.status === 204) return response
  return new Response(response.body.pipeThrough(whole()), { status: response.status, headers: response.headers })
}

/** Passes a stream on, and fails where it stops without its `[DONE]` or falls silent. */
function whole(): TransformStream<Uint8Array, Uint8Array> {
  let tail = ''
  let timer: ReturnType<typeof setTimeout> | undefined
  const decoder = new TextDecoder()
  const wait = (controller: TransformStreamDefaultController<Uint8Array>) => {
    clearTimeout(timer)
    timer = setTimeout(() => controller.error(new Lost('the server fell silent')), SILENCE)
  }
  return new TransformStream({
    start: wait,
    transform(chunk, controller) {
      wait(controller)
      tail = (tail + decoder.decode(chunk.subarray(-32))).slice(-32)
      controller.enqueue(chunk)
    },
    flush(controller) {
      clearTimeout(timer)
      if (!tail.trimEnd().endsWith('[DONE]')) controller.error(new Lost('the stream was cut'))
    },
  })
}

/** Whether it is the connection that failed, so that trying again is all there is to do. */
export function isLost(error: unknown): boolean {
  return error instanceof TypeError && /fetch|network|load failed/i.test(error.message)
}
