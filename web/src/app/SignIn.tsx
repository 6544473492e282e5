import { clsx } from 'clsx'
import { type FormEvent, useState } from 'react'
import { api } from '@/api/client'
import { Mark } from '@/app/Mark'
import { useTitle } from '@/app/title'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Field, INPUT } from '@/ui/Field'
import { Failed } from '@/ui/States'

/** The sign-in page, for browsers without a session cookie. */
export function SignIn() {
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  useTitle(text.signIn.title)

  async function signIn(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const token = String(new FormData(event.currentTarget).get('token') ?? '').trim()
    setBusy(true)
    setError(null)
    try {
      await api.post('/login', { token })
      location.reload()
    } catch (refusal) {
      setError(refusal)
      setBusy(false)
    }
  }

  return (
    <main className="grid min-h-dvh place-items-center bg-canvas p-4">
      <div className="w-full max-w-md rounded-3xl border border-line bg-surface p-6 shadow-raised sm:p-8">
        <Mark size={40} />
        <h1 className="mt-5 text-2xl font-semibold tracking-tight">{text.signIn.heading}</h1>
        <p className="mt-3 text-sm text-muted">{text.signIn.about}</p>
        <pre className="mt-3 rounded-lg border border-line bg-sunken px-4 py-3 font-mono text-sm">moot web</pre>
        <form onSubmit={signIn} className="mt-7 border-t border-line pt-6">
          <Field label={text.signIn.token} about={text.signIn.tokenHelp}>
            {(field) => (
              <input
                {...field}
                name="token"
                type="password"
                required
                autoComplete="off"
                spellCheck={false}
                className={clsx(INPUT, 'font-mono')}
              />
            )}
          </Field>
          <Button type="submit" look="primary" className="mt-4 w-full" disabled={busy}>
            {text.signIn.submit}
          </Button>
          {error !== null && <Failed error={error} className="mt-4" />}
        </form>
      </div>
    </main>
  )
}
