import { ChartNoAxesColumn } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { type Counts, type Group, type Stats, useStats } from '@/data/stats'
import { Area } from '@/settings/Area'
import { Bars } from '@/settings/Bars'
import { everyDay, sinceOf } from '@/settings/days'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { count, money, plural, short } from '@/ui/words'

const SPANS: readonly [words: string, days: number][] = [
  ['7 days', 7],
  ['30 days', 30],
  ['90 days', 90],
  ['All', 0],
]

/** Tokens and money by day, model and agent. */
export default function Usage() {
  const [days, setDays] = useState(30)
  const { data, error, refetch } = useStats(sinceOf(days))
  return (
    <Area
      title="Usage"
      about="What runs took that have ended. A price that nobody knows is unknown, and never nothing."
      actions={
        <fieldset className="flex rounded-lg bg-hover/70 p-0.5">
          <legend className="sr-only">Time</legend>
          {SPANS.map(([words, span]) => (
            <label
              key={words}
              className="grid h-8 cursor-pointer place-items-center rounded-md px-3 text-sm text-muted has-checked:bg-raised has-checked:text-ink has-focus-visible:outline-2 has-focus-visible:outline-focus max-md:h-11"
            >
              <input
                type="radio"
                name="span"
                className="sr-only"
                checked={days === span}
                onChange={() => setDays(span)}
              />
              {words}
            </label>
          ))}
        </fieldset>
      }
    >
      {data ? (
        <All stats={data} days={days} />
      ) : error ? (
        <Failed error={error} again={() => void refetch()} />
      ) : (
        <Loading />
      )}
    </Area>
  )
}

function All({ stats, days }: { stats: Stats; days: number }) {
  if (!stats.total.runs) {
    return (
      <Empty icon={ChartNoAxesColumn} title="Nothing ran in this time">
        Tokens and cost stand here once an agent has answered.
      </Empty>
    )
  }
  const known = new Map(stats.days.map((day) => [day.name, day]))
  const bars = (figureOf: (counts: Counts) => number, words: (value: number) => string) =>
    everyDay([...known.keys()], days).map((name) => {
      const value = known.has(name) ? figureOf(known.get(name) as Counts) : 0
      return { label: name.slice(5), value, words: words(value) }
    })
  return (
    <div className="space-y-9">
      <dl className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Sum name="Cost" value={costOf(stats.total)} note={unpriced(stats.total)} />
        <Sum name="Tokens" value={short(tokens(stats.total))} note={`${short(stats.total.output)} of them written`} />
        <Sum
          name="Runs"
          value={count(stats.total.runs)}
          note={stats.total.failed ? `${stats.total.failed} failed` : ''}
        />
        <Sum
          name="Stored in all"
          value={plural(stats.conversations, 'conversation')}
          note={plural(stats.messages, 'message')}
        />
      </dl>
      <Section title="Tokens by day">
        <Bars label="Tokens by day" bars={bars(tokens, (value) => `${count(value)} tokens`)} tick={short} />
      </Section>
      {stats.total.cost > 0 && (
        <Section title="Cost by day">
          <Bars label="Cost by day" bars={bars((counts) => counts.cost, money)} tick={money} />
        </Section>
      )}
      <Section title="By model">
        <Table label="By model" columns={columns('Model')} rows={stats.models} keyOf={(group) => group.name} />
      </Section>
      <Section title="By agent">
        <Table label="By agent" columns={columns('Agent')} rows={stats.agents} keyOf={(group) => group.name} />
      </Section>
      <Section title="By day">
        <Table label="By day" columns={columns('Day')} rows={stats.days} keyOf={(group) => group.name} />
      </Section>
    </div>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h2 className="mb-2 text-sm font-semibold">{title}</h2>
      {children}
    </section>
  )
}

function Sum({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div className="rounded-xl border border-line bg-raised p-4">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="mt-1 text-lg font-semibold tracking-tight break-words tabular-nums">{value}</dd>
      {note && <dd className="mt-0.5 text-xs text-muted">{note}</dd>}
    </div>
  )
}

function tokens(counts: Counts): number {
  return counts.input + counts.output
}

function costOf(counts: Counts): string {
  return counts.unpriced_runs === counts.runs ? 'unknown' : money(counts.cost)
}

function unpriced(counts: Counts): string {
  return counts.unpriced_runs ? `${plural(counts.unpriced_runs, 'run')} without a known price` : ''
}

function columns(head: string): Column<Group>[] {
  return [
    { head, cell: (group) => <span className="font-medium break-all">{group.name || 'not known'}</span> },
    { head: 'Runs', figures: true, cell: (group) => count(group.runs) },
    { head: 'Read', figures: true, wide: true, cell: (group) => count(group.input) },
    { head: 'Written', figures: true, wide: true, cell: (group) => count(group.output) },
    { head: 'Cost', figures: true, cell: costOf },
  ]
}
