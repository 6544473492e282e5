import { ShieldCheck, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import {
  type Action,
  type Permissions as Known,
  MODES,
  type Mode,
  type Rule,
  usePermissionActs,
  usePermissions,
  useRuling,
  useTools,
} from '@/data/settings'
import { Area } from '@/settings/Area'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { sayProblem } from '@/ui/toasts'

/** What goes without asking: the mode, the standing rules, and a way to try them. */
export default function Permissions() {
  const { data, error, refetch } = usePermissions()
  const [adding, setAdding] = useState(false)
  return (
    <Area
      title="Permissions"
      about="Deny goes before ask, ask before allow; what no rule decides, the mode does. What an answer allows for a conversation stands in that conversation."
      actions={
        <Button look="primary" onClick={() => setAdding(true)}>
          New rule
        </Button>
      }
    >
      {data ? <All known={data} /> : error ? <Failed error={error} again={() => void refetch()} /> : <Loading />}
      {adding && <Adding onClose={() => setAdding(false)} />}
    </Area>
  )
}

const MEANINGS: Record<Mode, string> = {
  ask: 'reads freely, asks before anything else',
  edits: 'edits files freely, asks before the rest',
  plan: 'reads and plans, changes nothing',
  auto: 'does everything that no rule forbids',
}

function All({ known }: { known: Known }) {
  const { mode } = usePermissionActs()
  return (
    <div className="space-y-8">
      <fieldset>
        <legend className="mb-2 text-sm font-semibold">Mode</legend>
        <div className="grid gap-2 sm:grid-cols-2">
          {MODES.map((name) => (
            <label
              key={name}
              className="flex cursor-pointer items-start gap-3 rounded-xl border border-line p-3 text-sm has-checked:border-accent has-checked:bg-accent-soft"
            >
              <input
                type="radio"
                name="mode"
                className="mt-0.5 size-4 accent-accent"
                checked={known.mode === name}
                disabled={mode.isPending}
                onChange={() => mode.mutate(name, { onError: sayProblem })}
              />
              <span>
                <span className="font-medium">{name}</span>
                <span className="block text-xs text-muted">{MEANINGS[name]}</span>
              </span>
            </label>
          ))}
        </div>
      </fieldset>
      <section aria-labelledby="rules">
        <h2 id="rules" className="mb-2 text-sm font-semibold">
          Rules
        </h2>
        {known.data.length ? (
          <Table
            label="Rules"
            columns={COLUMNS}
            rows={known.data}
            keyOf={(rule) => `${rule.tool} ${rule.action} ${rule.match} ${rule.origin}`}
          />
        ) : (
          <Empty icon={ShieldCheck} title="No rule of your own">
            The mode decides everything. “Always” on an approval writes a rule here.
          </Empty>
        )}
      </section>
      <Trying />
    </div>
  )
}

const LOOKS = { allow: 'good', ask: 'warn', deny: 'danger' } as const

const COLUMNS: readonly Column<Rule>[] = [
  { head: 'Tool', cell: (rule) => <span className="font-mono">{rule.tool}</span> },
  { head: 'Decision', cell: (rule) => <Badge look={LOOKS[rule.action]}>{rule.action}</Badge> },
  { head: 'Where it fits', cell: (rule) => <span className="font-mono break-all">{rule.match || 'everything'}</span> },
  {
    head: 'Written at',
    wide: true,
    cell: (rule) => <span className="text-xs break-all text-muted">{rule.origin}</span>,
  },
  { head: 'Take out', cell: (rule) => <Remove rule={rule} /> },
]

function Remove({ rule }: { rule: Rule }) {
  const { remove } = usePermissionActs()
  return (
    <IconButton
      label={`Remove the rule for ${rule.tool} ${rule.match}`}
      disabled={remove.isPending}
      onClick={() => remove.mutate(rule, { onError: sayProblem })}
    >
      <Trash2 size={16} aria-hidden />
    </IconButton>
  )
}

function ToolField() {
  const tools = useTools()
  return (
    <Field label="Tool">
      {(field) => (
        <select {...field} name="tool" className={INPUT}>
          {tools.data?.data.map((tool) => (
            <option key={tool.name}>{tool.name}</option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** What would happen to a call, before any model makes it. */
function Trying() {
  const ruling = useRuling()
  function ask(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    ruling.mutate({ tool: String(given.get('tool')), subject: String(given.get('subject')) })
  }
  return (
    <section aria-labelledby="trying">
      <h2 id="trying" className="mb-2 text-sm font-semibold">
        What would happen to …
      </h2>
      <form onSubmit={ask} className="grid items-end gap-3 sm:grid-cols-[11rem_1fr_auto]">
        <ToolField />
        <Field label="Command, path or address">
          {(field) => <input {...field} name="subject" autoComplete="off" className={`${INPUT} font-mono`} />}
        </Field>
        <Button type="submit" disabled={ruling.isPending}>
          Try
        </Button>
      </form>
      <div role="status" className="mt-3 space-y-1.5 text-sm">
        {ruling.data && (
          <p className="flex flex-wrap items-baseline gap-2">
            <Badge look={LOOKS[ruling.data.action]}>{ruling.data.action}</Badge>
            <span>{ruling.data.why}</span>
            <span className="text-xs break-all text-muted">{ruling.data.origin}</span>
          </p>
        )}
        {(ruling.data?.parts.length ?? 0) > 1 &&
          ruling.data?.parts.map((part) => (
            <p key={`${part.text} ${part.why}`} className="flex flex-wrap items-baseline gap-2 pl-5 text-xs">
              <Badge look={LOOKS[part.action]}>{part.action}</Badge>
              <code className="font-mono break-all">{part.text}</code>
              <span className="text-muted">{part.why}</span>
            </p>
          ))}
      </div>
      {ruling.error && <Failed error={ruling.error} className="mt-3" />}
    </section>
  )
}

function Adding({ onClose }: { onClose: () => void }) {
  const { add } = usePermissionActs()
  function make(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const rule = {
      tool: String(given.get('tool')),
      action: String(given.get('action')) as Action,
      match: String(given.get('match')).trim() || '*',
    }
    add.mutate(rule, { onSuccess: onClose })
  }
  return (
    <Dialog title="New rule" onClose={onClose}>
      <form onSubmit={make} className="space-y-4 overflow-y-auto p-5">
        <ToolField />
        <Field label="Decision">
          {(field) => (
            <select {...field} name="action" defaultValue="ask" className={INPUT}>
              {Object.keys(LOOKS).map((action) => (
                <option key={action}>{action}</option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label="Where it fits"
          about="A command, path or address; * stands for anything. Empty: every call of the tool."
        >
          {(field) => <input {...field} name="match" autoComplete="off" className={`${INPUT} font-mono`} />}
        </Field>
        {add.error && <Failed error={add.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" look="primary" disabled={add.isPending}>
            Write the rule
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
