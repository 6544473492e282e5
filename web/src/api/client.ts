import { noteReached } from '@/api/online'

/** An answer of the server that is no success, as RFC 9457 tells it. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  /** The next move, in the server's words; empty when it has none. */
  readonly fix: string
  readonly requestId: string

  constructor(status: number, body: Partial<ProblemBody>) {
    super(body.detail || body.title || `the server answered ${status}`)
    this.name = 'Problem'
    this.status = status
    this.code = body.code ?? ''
    this.fix = body.fix ?? ''
    this.requestId = body.request_id ?? ''
  }
}

interface ProblemBody {
  title: string
  detail: string
  code: string
  fix: string | null
  request_id: string
}

export type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>

export interface Options {
  query?: Query
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** The address of a route: `address("/conversations", { limit: 50 })`. What is null, undefined or "" is left out. */
export function address(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== '') parameters.append(name, String(one))
    }
  }
  const text = parameters.toString()
  return `/api${path}${text ? `?${text}` : ''}`
}

const onSignedOut = new Set<() => void>()

/** Calls back when the server says that nobody is signed in; gives back how to stop listening. */
export function whenSignedOut(listener: () => void): () => void {
  onSignedOut.add(listener)
  return () => onSignedOut.delete(listener)
}

/** A response that is a success; anything else is thrown as a `Problem`. */
export async function send(method: string, path: string, body?: unknown, options: Options = {}): Promise<Response> {
  const isData = body instanceof Blob || body instanceof ArrayBuffer
  const response = await reaching(address(path, options.query), {
    method,
    credentials: 'same-origin',
    headers: { ...(body === undefined || isData ? {} : { 'content-type': 'application/json' }), ...options.headers },
    body: body === undefined ? undefined : isData ? body : JSON.stringify(body),
    signal: options.signal,
  })
  if (response.ok) return response
  throw await problemOf(response)
}

/** `fetch`, which notes whether the server was reached at all. */
export async function reaching(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init)
    noteReached(true)
    return response
  } catch (error) {
    if (error instanceof TypeError) noteReached(false) // else it was given up by the page itself
    throw error
  }
}

/** What a response that is no success says. */
export async function problemOf(response: Response): Promise<Problem> {
  if (response.status === 401) for (const listener of onSignedOut) listener()
  const type = response.headers.get('content-type') ?? ''
  const body = type.includes('json') ? ((await response.json()) as Partial<ProblemBody>) : {}
  return new Problem(response.status, body)
}

async function value<T>(response: Response): Promise<T> {
  return (response.status === 204 ? undefined : await response.json()) as T
}

/** The server's API: paths are written without `/api`. */
export const api = {
  get: async <T>(path: string, options?: Options) => value<T>(await send('GET', path, undefined, options)),
  post: async <T>(path: string, body?: unknown, options?: Options) => value<T>(await send('POST', path, body, options)),
  patch: async <T>(path: string, body?: unknown, options?: Options) =>
    value<T>(await send('PATCH', path, body, options)),
  put: async <T>(path: string, body?: unknown, options?: Options) => value<T>(await send('PUT', path, body, options)),
  delete: async <T>(path: string, options?: Options) => value<T>(await send('DELETE', path, undefined, options)),
}
