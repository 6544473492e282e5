import { useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import { pushDevice } from '@/app/notifications'
import { useSession } from '@/app/session'
import { turnOffPush } from '@/data/push'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { moment } from '@/ui/format'
import { Failed, Loading } from '@/ui/States'
import { notifyError } from '@/ui/toasts'

/** Sign out. This browser then gets no more notifications. */
async function signOut(): Promise<void> {
  try {
    if (pushDevice()) await turnOffPush()
  } finally {
    await api.post('/logout').finally(() => location.assign('/'))
  }
}

/** The server, its status, the current session and the sign-out button. */
export default function About() {
  const { data, error, refetch } = useSession()
  const seen = useQuery({ queryKey: ['health'], queryFn: health, refetchInterval: 10_000 })
  return (
    <Area
      title={text.settings.about}
      actions={
        <Button
          onClick={() => {
            void signOut().catch(notifyError)
          }}
        >
          {text.about.signOut}
        </Button>
      }
    >
      {error && <Failed error={error} retry={() => void refetch()} />}
      {data ? (
        <dl className="divide-y divide-line overflow-hidden rounded-xl border border-line text-sm">
          <Line name={text.about.server} value={location.origin} />
          <Line name={text.about.status} value={seen.data ?? '…'} />
          <Line name={text.about.lastChecked} value={seen.dataUpdatedAt ? moment(seen.dataUpdatedAt) : '…'} />
          <Line name={text.about.signedInAs} value={data.owner} />
          <Line name={text.about.token} value={data.token_id} />
          <Line name={text.about.scopes} value={data.scopes.join(', ')} />
        </dl>
      ) : (
        <Loading rows={4} />
      )}
      <p className="mt-6 text-sm text-muted">
        {text.about.apiBefore}
        <a href="/docs" className="text-accent underline">
          /docs
        </a>
        {text.about.apiAfter}
        <code className="font-mono">moot doctor</code>
        {text.about.doctorAfter}
      </p>
    </Area>
  )
}

/** Return the server's health as text. */
async function health(): Promise<string> {
  const response = await fetch('/readyz')
  return response.ok ? text.about.healthy : text.about.unhealthy
}

function Line({ name, value }: { name: string; value: string }) {
  return (
    <div className="grid gap-x-4 gap-y-0.5 px-4 py-2.5 sm:grid-cols-[12rem_1fr]">
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 break-all">{value}</dd>
    </div>
  )
}
