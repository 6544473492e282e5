import { DefaultChatTransport } from 'ai'
import { problemOf, reaching } from '@/api/client'
import type { Message } from '@/api/types'

/** The connection counts as lost after this many ms without data. The server sends a keep-alive every 15 s. */
const SILENCE = 40_000

/** A lost connection, as opposed to an error response. */
export class Lost extends TypeError {
  constructor(why: string) {
    super(`network: ${why}`) // the AI SDK recognizes a lost connection by this word
  }
}

/** Additional fields of the request body. */
export interface Extra {
  agent?: string
  model?: string
  on_busy?: 'queue' | 'steer' | 'interrupt'
  [name: string]: unknown
}

/** The transport for `/api/chat`. It sends only the new message, reports that the server accepted it, and detects streams that end early. */
export function transport(accepted: () => void): DefaultChatTransport<Message> {
  return new DefaultChatTransport<Message>({
    api: '/api/chat',
    credentials: 'same-origin',
    headers: { 'x-ai-sdk-version': '7' },
    fetch: (async (input: RequestInfo | URL, init?: RequestInit) => {
      const response = await checked(input, init)
      if (init?.method === 'POST') accepted()
      return response
    }) as typeof fetch,
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => {
      const last = messages.at(-1)
      const message =
        trigger === 'submit-message' ? last && { id: last.id, role: last.role, parts: last.parts } : undefined
      return { body: { ...body, id, trigger, messageId, ...(message && { message }) } }
    },
  })
}

async function checked(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await answered(input, init)
  if (!response.ok) throw await problemOf(response)
  if (!response.body || response.status === 204) return response
  return new Response(response.body.pipeThrough(whole()), { status: response.status, headers: response.headers })
}

/** Call `fetch`, but fail if the server accepts the connection and never answers. */
async function answered(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const silent = new AbortController()
  const timer = setTimeout(() => silent.abort(new Lost('no response from the server')), SILENCE)
  const signal = init.signal ? AbortSignal.any([init.signal, silent.signal]) : silent.signal
  try {
    return await reaching(input, { ...init, signal })
  } finally {
    clearTimeout(timer)
  }
}

/** Pass a stream through unchanged. Fail if it stalls, or if it ends without `[DONE]`. */
function whole(): TransformStream<Uint8Array, Uint8Array> {
  let tail = ''
  let timer: ReturnType<typeof setTimeout> | undefined
  const decoder = new TextDecoder()
  const wait = (controller: TransformStreamDefaultController<Uint8Array>) => {
    clearTimeout(timer)
    timer = setTimeout(() => controller.error(new Lost('no data from the server')), SILENCE)
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
      if (!tail.trimEnd().endsWith('[DONE]')) controller.error(new Lost('the stream ended early'))
    },
  })
}
