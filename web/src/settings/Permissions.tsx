import { ShieldCheck, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import {
  type Action,
  type Permissions as Known,
  MODES,
  type Rule,
  usePermissionActions,
  usePermissions,
  useRuling,
  useTools,
} from '@/data/settings'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { notifyError } from '@/ui/toasts'

/** The permission mode, the rules and a form to test them. */
export default function Permissions() {
  const { data, error, refetch } = usePermissions()
  const [adding, setAdding] = useState(false)
  return (
    <Area
      title={text.settings.permissions}
      about={text.permissions.about}
      actions={
        <Button look="primary" onClick={() => setAdding(true)}>
          {text.permissions.newRule}
        </Button>
      }
    >
      {data ? <All known={data} /> : error ? <Failed error={error} retry={() => void refetch()} /> : <Loading />}
      {adding && <NewRuleDialog onClose={() => setAdding(false)} />}
    </Area>
  )
}

function All({ known }: { known: Known }) {
  const { mode } = usePermissionActions()
  return (
    <div className="space-y-8">
      <fieldset>
        <legend className="mb-2 text-sm font-semibold">{text.permissions.mode}</legend>
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
                onChange={() => mode.mutate(name, { onError: notifyError })}
              />
              <span>
                <span className="font-medium">{name}</span>
                <span className="block text-xs text-muted">{text.permissions.modes[name]}</span>
              </span>
            </label>
          ))}
        </div>
      </fieldset>
      <section aria-labelledby="rules">
        <h2 id="rules" className="mb-2 text-sm font-semibold">
          {text.permissions.rules}
        </h2>
        {known.data.length ? (
          <Table
            label={text.permissions.rules}
            columns={COLUMNS}
            rows={known.data}
            keyOf={(rule) => `${rule.tool} ${rule.action} ${rule.match} ${rule.origin}`}
          />
        ) : (
          <Empty icon={ShieldCheck} title={text.permissions.empty}>
            {text.permissions.emptyAbout}
          </Empty>
        )}
      </section>
      <TestForm />
    </div>
  )
}

const LOOKS = { allow: 'good', ask: 'warn', deny: 'danger' } as const

const COLUMNS: readonly Column<Rule>[] = [
  { head: text.permissions.tool, cell: (rule) => <span className="font-mono">{rule.tool}</span> },
  { head: text.permissions.decision, cell: (rule) => <Badge look={LOOKS[rule.action]}>{rule.action}</Badge> },
  {
    head: text.permissions.pattern,
    cell: (rule) => <span className="font-mono break-all">{rule.match || text.permissions.anything}</span>,
  },
  {
    head: text.permissions.source,
    wide: true,
    cell: (rule) => <span className="text-xs break-all text-muted">{rule.origin}</span>,
  },
  { head: text.permissions.remove, cell: (rule) => <Remove rule={rule} /> },
]

function Remove({ rule }: { rule: Rule }) {
  const { remove } = usePermissionActions()
  return (
    <IconButton
      label={text.permissions.removeRule(rule.tool, rule.match)}
      disabled={remove.isPending}
      onClick={() => remove.mutate(rule, { onError: notifyError })}
    >
      <Trash2 size={16} aria-hidden />
    </IconButton>
  )
}

function ToolField() {
  const tools = useTools()
  return (
    <Field label={text.permissions.tool}>
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

/** A form that shows how the permissions apply to a call. */
function TestForm() {
  const ruling = useRuling()
  function ask(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    ruling.mutate({ tool: String(given.get('tool')), subject: String(given.get('subject')) })
  }
  return (
    <section aria-labelledby="trying">
      <h2 id="trying" className="mb-2 text-sm font-semibold">
        {text.permissions.testTitle}
      </h2>
      <form onSubmit={ask} className="grid items-end gap-3 sm:grid-cols-[11rem_1fr_auto]">
        <ToolField />
        <Field label={text.permissions.subject}>
          {(field) => <input {...field} name="subject" autoComplete="off" className={`${INPUT} font-mono`} />}
        </Field>
        <Button type="submit" disabled={ruling.isPending}>
          {text.permissions.test}
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

function NewRuleDialog({ onClose }: { onClose: () => void }) {
  const { add } = usePermissionActions()
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
    <Dialog title={text.permissions.newRule} onClose={onClose}>
      <form onSubmit={make} className="space-y-4 overflow-y-auto p-5">
        <ToolField />
        <Field label={text.permissions.decision}>
          {(field) => (
            <select {...field} name="action" defaultValue="ask" className={INPUT}>
              {Object.keys(LOOKS).map((action) => (
                <option key={action}>{action}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label={text.permissions.pattern} about={text.permissions.patternHelp}>
          {(field) => <input {...field} name="match" autoComplete="off" className={`${INPUT} font-mono`} />}
        </Field>
        {add.error && <Failed error={add.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" disabled={add.isPending}>
            {text.permissions.create}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
