import { api } from '@/api/client'

/** Spends the single-use code that `moot web` puts behind the address's `#`, and takes it out of the address and the history. */
export async function signInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (!code) return
  history.replaceState(null, '', location.pathname + location.search)
  await api.post('/login', { code }).catch(() => undefined) // a spent code changes nothing: the next request says whether we are signed in
}
