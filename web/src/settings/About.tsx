import { useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import { Area } from '@/settings/Area'
import { Button } from '@/ui/Button'
import { Failed, Loading } from '@/ui/States'
import { moment } from '@/ui/words'

interface Session {
  token_id: string
  owner: string
  scopes: string[]
}

/** Who is signed in where, and the way out. */
export default function About() {
  const { data, error, refetch } = useQuery({
    queryKey: ['session'],
    queryFn: ({ signal }) => api.get<Session>('/session', { signal }),
  })
  const seen = useQuery({ queryKey: ['health'], queryFn: health, refetchInterval: 10_000 })
  return (
    <Area
      title="About"
      actions={
        <Button
          onClick={() => {
            void api.post('/logout').finally(() => location.assign('/'))
          }}
        >
          Sign this browser out
        </Button>
      }
    >
      {error && <Failed error={error} again={() => void refetch()} />}
      {data ? (
        <dl className="divide-y divide-line overflow-hidden rounded-xl border border-line text-sm">
          <Line name="Server" value={location.origin} />
          <Line name="State" value={seen.data ?? '…'} />
          <Line name="Looked at" value={seen.dataUpdatedAt ? moment(seen.dataUpdatedAt) : '…'} />
          <Line name="Signed in as" value={data.owner} />
          <Line name="With the token" value={data.token_id} />
          <Line name="Which may" value={data.scopes.join(', ')} />
        </dl>
      ) : (
        <Loading rows={4} />
      )}
      <p className="mt-6 text-sm text-muted">
        The interface for programs is described at{' '}
        <a href="/docs" className="text-accent underline">
          /docs
        </a>
        . What this machine has and lacks, <code className="font-mono">moot doctor</code> says in a terminal.
      </p>
    </Area>
  )
}

/** Whether the server can work, in words. */
async function health(): Promise<string> {
  const response = await fetch('/readyz')
  return response.ok ? 'works' : 'its store does not answer'
}

function Line({ name, value }: { name: string; value: string }) {
  return (
    <div className="grid gap-x-4 gap-y-0.5 px-4 py-2.5 sm:grid-cols-[12rem_1fr]">
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 break-all">{value}</dd>
    </div>
  )
}
