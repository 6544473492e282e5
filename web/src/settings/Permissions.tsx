import { ShieldCheck } from 'lucide-react'
import { type Rule, useRules } from '@/data/settings'
import { Area } from '@/settings/Area'
import { Badge } from '@/ui/Badge'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'

/** The standing rules and where each is written. */
export default function Permissions() {
  const { data, error, refetch } = useRules()
  return (
    <Area
      title="Permissions"
      about="The standing rules: deny goes before ask, ask before allow. What no rule decides, the mode does. What an answer allows for a conversation stands in that conversation."
    >
      {error ? (
        <Failed error={error} again={() => void refetch()} />
      ) : data ? (
        <All rules={data.data} />
      ) : (
        <Loading rows={4} />
      )}
    </Area>
  )
}

function All({ rules }: { rules: readonly Rule[] }) {
  if (!rules.length) {
    return (
      <Empty icon={ShieldCheck} title="No rule of your own">
        The mode decides everything. “Always” on an approval writes a rule, and so does the section{' '}
        <code className="font-mono">permissions.rules</code> of the configuration.
      </Empty>
    )
  }
  return (
    <Table
      label="Rules"
      columns={COLUMNS}
      rows={rules}
      keyOf={(rule) => `${rule.tool} ${rule.action} ${rule.match} ${rule.origin}`}
    />
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
    cell: (rule) => <span className="text-xs break-all text-muted">{rule.origin || 'this conversation'}</span>,
  },
]
