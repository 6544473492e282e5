import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api } from '@/api/client'
import { outbox } from '@/conversation/outbox'

export interface SignedInSession {
  token_id: string
  owner: string
  scopes: string[]
  /** True if the server can transcribe recordings. */
  transcribes: boolean
  /** True if a search engine is set up. */
  searches_web: boolean
  /** Keys of the configuration: action → its keys, as the terminal names them. */
  keys: Record<string, string[]>
}

/** Sign in with the single-use code from the URL fragment, and remove the code from the address and the browser history. */
export async function signInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (!code) return
  history.replaceState(null, '', location.pathname + location.search)
  await api.post('/login', { code }).catch(() => undefined) // ignore a used code: the next request tells whether the browser is signed in
}

let loaded: SignedInSession | null = null

async function load(signal?: AbortSignal): Promise<SignedInSession> {
  loaded = await api.get<SignedInSession>('/session', { signal })
  return loaded
}

/** Return the signed-in session. */
export function useSession() {
  return useQuery({ queryKey: ['session'], queryFn: ({ signal }) => load(signal) })
}

/** Return true if the server attaches what a prompt of this user refers to after `@`. */
export async function mayRefer(): Promise<boolean> {
  const { owner, scopes } = loaded ?? (await load())
  return owner === 'local' && scopes.includes('tools')
}

/** Show the unsent prompts of the signed-in user. */
export function useOwnOutbox(): void {
  const { data } = useSession()
  useEffect(() => {
    if (data) outbox.own(data.owner)
  }, [data])
}
