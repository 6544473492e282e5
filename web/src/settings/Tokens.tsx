import { KeyRound } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { type Token, useTokenActs, useTokens } from '@/data/settings'
import { Area } from '@/settings/Area'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { TakeBack } from '@/ui/TakeBack'
import { ToldOnce } from '@/ui/ToldOnce'
import { When } from '@/ui/When'

/** Who may talk to this server: tokens to list, make and take back. */
export default function Tokens() {
  const { data, error, refetch } = useTokens()
  const [making, setMaking] = useState(false)
  return (
    <Area
      title="Tokens"
      about="Each program gets a token of its own, with no more rights than it needs. A token’s secret is shown once, when it is made."
      actions={
        <Button look="primary" onClick={() => setMaking(true)}>
          New token
        </Button>
      }
    >
      {error ? (
        <Failed error={error} again={() => void refetch()} />
      ) : data ? (
        <All tokens={data.data} />
      ) : (
        <Loading rows={3} />
      )}
      {making && <Making onClose={() => setMaking(false)} />}
    </Area>
  )
}

function All({ tokens }: { tokens: readonly Token[] }) {
  if (!tokens.length) return <Empty icon={KeyRound} title="No token opens this server" />
  return <Table label="Tokens" columns={COLUMNS} rows={tokens} keyOf={(token) => token.id} />
}

const COLUMNS: readonly Column<Token>[] = [
  {
    head: 'Name',
    cell: (token) => (
      <>
        <span className="font-medium break-all">{token.name}</span>
        {token.kind === 'browser' && <span className="block text-xs text-muted">a signed-in browser</span>}
      </>
    ),
  },
  {
    head: 'May',
    cell: (token) => (
      <span className="flex flex-wrap gap-1">
        {token.scopes.map((scope) => (
          <Badge key={scope} look={scope === 'admin' ? 'warn' : 'plain'}>
            {scope}
          </Badge>
        ))}
      </span>
    ),
  },
  { head: 'Made', wide: true, cell: (token) => <When at={token.created_at} /> },
  { head: 'Last used', wide: true, cell: (token) => (token.used_at ? <When at={token.used_at} /> : 'never') },
  { head: 'Ends', wide: true, cell: (token) => (token.expires_at ? <When at={token.expires_at} /> : 'when revoked') },
  { head: 'Take back', cell: (token) => <Revoke token={token} /> },
]

function Revoke({ token }: { token: Token }) {
  const { revoke } = useTokenActs()
  return <TakeBack act="Revoke" name={token.name} busy={revoke.isPending} onSure={() => revoke.mutate(token.id)} />
}

const SCOPES: readonly [string, string][] = [
  ['read', 'see everything'],
  ['chat', 'read, and talk to agents'],
  ['tools', 'chat, and answer approvals'],
  ['admin', 'everything, tokens and configuration too'],
]

const TIMES: readonly [string, number][] = [
  ['until it is revoked', 0],
  ['a day', 86_400],
  ['30 days', 30 * 86_400],
  ['a year', 365 * 86_400],
]

function Making({ onClose }: { onClose: () => void }) {
  const { create } = useTokenActs()
  function make(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const seconds = Number(given.get('expires'))
    create.mutate({
      name: String(given.get('name')).trim(),
      scopes: [String(given.get('scope'))],
      ...(seconds > 0 && { expires_in: seconds }),
    })
  }
  if (create.data) {
    const { name, secret } = create.data
    const about = 'Keep it now: nobody can tell it again, this page included.'
    return <ToldOnce title={`The token “${name}”`} about={about} text={secret} onClose={onClose} />
  }
  return (
    <Dialog title="New token" onClose={onClose}>
      <form onSubmit={make} className="space-y-4 overflow-y-auto p-5">
        <Field label="Name" about="Of the program or machine that gets it.">
          {(field) => <input {...field} name="name" required maxLength={100} autoComplete="off" className={INPUT} />}
        </Field>
        <fieldset>
          <legend className="mb-1 text-sm font-medium">What it may do</legend>
          {SCOPES.map(([scope, words]) => (
            <label key={scope} className="flex min-h-9 cursor-pointer items-center gap-3 text-sm max-md:min-h-11">
              <input
                type="radio"
                name="scope"
                value={scope}
                defaultChecked={scope === 'chat'}
                className="size-4 accent-accent"
              />
              <span className="w-14 font-medium">{scope}</span>
              <span className="text-muted">{words}</span>
            </label>
          ))}
        </fieldset>
        <Field label="How long it holds">
          {(field) => (
            <select {...field} name="expires" className={INPUT}>
              {TIMES.map(([words, seconds]) => (
                <option key={words} value={seconds}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        {create.error && <Failed error={create.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" look="primary" disabled={create.isPending}>
            Make the token
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
