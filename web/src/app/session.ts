import { api } from '@/api/client'

/** Sign in with the single-use code from the URL fragment, and removes the code from the address and the history. */
export async function signInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (!code) return
  history.replaceState(null, '', location.pathname + location.search)
  await api.post('/login', { code }).catch(() => undefined) // ignore a used code: the next request tells whether the browser is signed in
}
