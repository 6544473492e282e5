import { noteReached } from '@/api/online'
import { text } from '@/text'

/** An error response of the server (RFC 9457). */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  /** The server's suggested fix. May be empty. */
  readonly fix: string
  readonly requestId: string
  /** Invalid values by their dotted key. */
  readonly errors: readonly { at: string; message: string }[]

  constructor(status: number, body: Partial<ProblemBody>) {
    super(body.detail || body.title || text.common.status(status))
    this.name = 'Problem'
    this.status = status
    this.code = body.code ?? ''
    this.fix = body.fix ?? ''
    this.requestId = body.request_id ?? ''
    this.errors = body.errors ?? []
  }
}

interface ProblemBody {
  title: string
  detail: string
  code: string
  fix: string | null
  request_id: string
  errors?: { at: string; message: string }[]
}

export type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>

export interface Options {
  query?: Query
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** Return the URL of a route: `address("/conversations", { limit: 50 })`. Omit null, undefined and empty values. */
export function address(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== '') parameters.append(name, String(one))
    }
  }
  const encoded = parameters.toString()
  return `/api${path}${encoded ? `?${encoded}` : ''}`
}

const onSignedOut = new Set<() => void>()

/** Call the listener when a request is not authenticated. Return a function that unsubscribes. */
export function whenSignedOut(listener: () => void): () => void {
  onSignedOut.add(listener)
  return () => onSignedOut.delete(listener)
}

/** Send a request. Throw `Problem` unless it succeeds. */
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

/** Call `fetch`, and record whether the server was reached. */
export async function reaching(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init)
    noteReached(true)
    return response
  } catch (error) {
    if (error instanceof TypeError) noteReached(false) // all other errors mean that the page aborted the request
    throw error
  }
}

/** Parse an error response. */
export async function problemOf(response: Response): Promise<Problem> {
  if (response.status === 401) for (const listener of onSignedOut) listener()
  const type = response.headers.get('content-type') ?? ''
  const body = type.includes('json') ? ((await response.json()) as Partial<ProblemBody>) : {}
  return new Problem(response.status, body)
}

/** A resource with its ETag. */
export interface Tagged<T> {
  value: T
  etag: string
}

/** Fetch a resource with its ETag. */
export async function tagged<T>(path: string, options?: Options): Promise<Tagged<T>> {
  const response = await send('GET', path, undefined, options)
  return { value: await value<T>(response), etag: response.headers.get('etag') ?? '' }
}

/** Change a resource only if it still has the given ETag. If someone else has changed it, throw an error that says what to do. */
export async function unlessChanged<T>(
  etag: string,
  change: (headers: Record<string, string>) => Promise<T>,
): Promise<T> {
  try {
    return await change(etag ? { 'if-match': etag } : {})
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 412) throw error
    const { code, requestId } = error
    throw new Problem(412, { detail: text.common.changed, fix: text.common.changedFix, code, request_id: requestId })
  }
}

async function value<T>(response: Response): Promise<T> {
  return (response.status === 204 ? undefined : await response.json()) as T
}

/** The server's API. Paths omit `/api`. */
export const api = {
  get: async <T>(path: string, options?: Options) => value<T>(await send('GET', path, undefined, options)),
  post: async <T>(path: string, body?: unknown, options?: Options) => value<T>(await send('POST', path, body, options)),
  patch: async <T>(path: string, body?: unknown, options?: Options) =>
    value<T>(await send('PATCH', path, body, options)),
  put: async <T>(path: string, body?: unknown, options?: Options) => value<T>(await send('PUT', path, body, options)),
  delete: async <T>(path: string, options?: Options) => value<T>(await send('DELETE', path, undefined, options)),
}

/** Return true if the error is a lost connection, so that the request can be retried. */
export function isLost(error: unknown): boolean {
  return error instanceof TypeError && /fetch|network|load failed/i.test(error.message)
}
