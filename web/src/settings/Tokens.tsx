import { KeyRound } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { type Token, useTokenActions, useTokens } from '@/data/settings'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { RevokeButton } from '@/ui/RevokeButton'
import { SecretDialog } from '@/ui/SecretDialog'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { When } from '@/ui/When'

/** The access tokens of this server: list, create and revoke. */
export default function Tokens() {
  const { data, error, refetch } = useTokens()
  const [making, setMaking] = useState(false)
  return (
    <Area
      title={text.settings.tokens}
      about={text.tokens.about}
      actions={
        <Button look="primary" onClick={() => setMaking(true)}>
          {text.tokens.new}
        </Button>
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : data ? (
        <All tokens={data.data} />
      ) : (
        <Loading rows={3} />
      )}
      {making && <NewTokenDialog onClose={() => setMaking(false)} />}
    </Area>
  )
}

function All({ tokens }: { tokens: readonly Token[] }) {
  if (!tokens.length) return <Empty icon={KeyRound} title={text.tokens.empty} />
  return <Table label={text.settings.tokens} columns={COLUMNS} rows={tokens} keyOf={(token) => token.id} />
}

const COLUMNS: readonly Column<Token>[] = [
  {
    head: text.common.name,
    cell: (token) => (
      <>
        <span className="font-medium break-all">{token.name}</span>
        {token.kind === 'browser' && <span className="block text-xs text-muted">{text.tokens.browser}</span>}
      </>
    ),
  },
  {
    head: text.tokens.scopes,
    cell: (token) => (
      <span className="flex flex-wrap gap-1">
        {token.scopes.map((scope) => (
          <Badge key={scope} look={scope === 'admin' || scope === 'machine' ? 'warn' : 'plain'}>
            {scope}
          </Badge>
        ))}
      </span>
    ),
  },
  { head: text.tokens.created, wide: true, cell: (token) => <When at={token.created_at} /> },
  {
    head: text.tokens.lastUsed,
    wide: true,
    cell: (token) => (token.used_at ? <When at={token.used_at} /> : text.common.never),
  },
  {
    head: text.tokens.expires,
    wide: true,
    cell: (token) => (token.expires_at ? <When at={token.expires_at} /> : text.common.never),
  },
  { head: text.tokens.revoke, pinned: true, cell: (token) => <Revoke token={token} /> },
]

function Revoke({ token }: { token: Token }) {
  const { revoke } = useTokenActions()
  return <RevokeButton name={token.name} busy={revoke.isPending} onConfirm={() => revoke.mutate(token.id)} />
}

const SCOPES = Object.entries(text.tokens.scopeHelp)

const TIMES: readonly [string, number][] = [
  [text.tokens.times.never, 0],
  [text.tokens.times.day, 86_400],
  [text.tokens.times.month, 30 * 86_400],
  [text.tokens.times.year, 365 * 86_400],
]

function NewTokenDialog({ onClose }: { onClose: () => void }) {
  const { create } = useTokenActions()
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

    return (
      <SecretDialog title={text.tokens.token(name)} about={text.tokens.copyNow} secret={secret} onClose={onClose} />
    )
  }
  return (
    <Dialog title={text.tokens.new} onClose={onClose}>
      <form onSubmit={make} className="space-y-4 overflow-y-auto p-5">
        <Field label={text.common.name} about={text.tokens.nameHelp}>
          {(field) => <input {...field} name="name" required maxLength={100} autoComplete="off" className={INPUT} />}
        </Field>
        <fieldset>
          <legend className="mb-1 text-sm font-medium">{text.tokens.scope}</legend>
          {SCOPES.map(([scope, help]) => (
            <label key={scope} className="flex min-h-9 cursor-pointer items-center gap-3 text-sm max-md:min-h-11">
              <input
                type="radio"
                name="scope"
                value={scope}
                defaultChecked={scope === 'chat'}
                className="size-4 accent-accent"
              />
              <span className="w-14 font-medium">{scope}</span>
              <span className="text-muted">{help}</span>
            </label>
          ))}
        </fieldset>
        <Field label={text.tokens.expiration}>
          {(field) => (
            <select {...field} name="expires" className={INPUT}>
              {TIMES.map(([label, seconds]) => (
                <option key={label} value={seconds}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {create.error && <Failed error={create.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" disabled={create.isPending}>
            {text.tokens.create}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
