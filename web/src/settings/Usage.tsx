import { ChartNoAxesColumn } from 'lucide-react'
import { type ReactNode, useMemo, useState } from 'react'
import { type AsideCounts, type Counts, type Group, type Stats, type ToolCounts, useStats } from '@/data/stats'
import { Area } from '@/settings/Area'
import { Bars } from '@/settings/Bars'
import { periods, sinceOf, type Unit } from '@/settings/days'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { count, money, plural, short } from '@/ui/words'

const HEADS: Record<Unit, string> = { day: 'Day', week: 'Week from', month: 'Month', year: 'Year' }

const SPANS: readonly [words: string, days: number][] = [
  ['7 days', 7],
  ['30 days', 30],
  ['90 days', 90],
  ['All', 0],
]

/** Tokens, money and time by day, model, agent and project; tools and errors. */
export default function Usage() {
  const [days, setDays] = useState(30)
  const { data, error, refetch } = useStats(sinceOf(days))
  return (
    <Area
      title="Usage"
      about="What answers took, those of other programs too. A price that nobody knows is unknown, and never nothing."
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
  const { unit, all } = useMemo(() => periods(stats.days, days), [stats, days])
  if (!stats.total.runs) {
    return (
      <Empty icon={ChartNoAxesColumn} title="Nothing ran in this time">
        Tokens and cost stand here once an agent has answered.
      </Empty>
    )
  }
  const bars = (figureOf: (counts: Counts) => number, words: (value: number) => string) =>
    all.map((period) => {
      const value = figureOf(period)
      return { label: period.name, tick: unit === 'day' ? period.name.slice(5) : undefined, value, words: words(value) }
    })
  return (
    <div className="space-y-9">
      {stats.uncounted > 0 && (
        <p role="status" className="rounded-lg border border-warn/40 bg-warn-soft px-3 py-2 text-sm">
          {plural(stats.uncounted, 'answer')} not counted yet; the sums are without{' '}
          {stats.uncounted === 1 ? 'it' : 'them'}.
        </p>
      )}
      <dl className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Sum name="Cost" value={costOf(stats.total)} note={unpriced(stats.total)} />
        <Sum
          name="Tokens"
          value={short(tokens(stats.total))}
          note={`${short(stats.total.output)} written, ${short(stats.total.cache_read)} read from a cache`}
        />
        <Sum
          name="Answers"
          value={count(stats.total.runs)}
          note={`${plural(perAnswer(stats.total), 'step')} each${stats.total.failed ? `, ${count(stats.total.failed)} failed` : ''}`}
        />
        {stats.total.first !== null && (
          <Sum
            name="First word after"
            value={time(stats.total.first)}
            note={stats.total.rate === null ? '' : `then ${count(Math.round(stats.total.rate))} tokens a second`}
          />
        )}
        <Sum
          name="Stored in all"
          value={count(stats.conversations)}
          note={`${stats.conversations === 1 ? 'conversation' : 'conversations'}, ${plural(stats.messages, 'message')}`}
        />
      </dl>
      <Section title={`Tokens by ${unit}`}>
        <Bars label={`Tokens by ${unit}`} bars={bars(tokens, (value) => `${count(value)} tokens`)} tick={short} />
      </Section>
      {stats.total.cost > 0 && (
        <Section title={`Cost by ${unit}`}>
          <Bars label={`Cost by ${unit}`} bars={bars((counts) => counts.cost, money)} tick={money} />
        </Section>
      )}
      <Section title={`Context by ${unit}`}>
        <Bars
          label={`Context by ${unit}`}
          bars={bars(
            (counts) => counts.context,
            (value) => `${count(value)} tokens`,
          )}
          tick={short}
        />
      </Section>
      <Section title="By model">
        <Table label="By model" columns={columns('Model')} rows={stats.models} keyOf={(group) => group.name} />
      </Section>
      <Section title="By agent">
        <Table label="By agent" columns={columns('Agent')} rows={stats.agents} keyOf={(group) => group.name} />
      </Section>
      <Section title="By project">
        <Table label="By project" columns={columns('Project')} rows={stats.projects} keyOf={(group) => group.name} />
      </Section>
      {stats.tools.length > 0 && (
        <Section title="By tool">
          <Table label="By tool" columns={TOOLS} rows={stats.tools} keyOf={(tool) => tool.name} />
        </Section>
      )}
      {stats.errors.length > 0 && (
        <Section title="What failed">
          <Table label="What failed" columns={ERRORS} rows={stats.errors} keyOf={(error) => error.name} />
        </Section>
      )}
      {stats.asides.length > 0 && (
        <Section title="Calls besides">
          <Table label="Calls besides" columns={ASIDES} rows={stats.asides} keyOf={(aside) => aside.name} />
        </Section>
      )}
      <Section title={`By ${unit}`}>
        <Table
          label={`By ${unit}`}
          columns={columns(HEADS[unit])}
          rows={all.filter((period) => period.runs).reverse()}
          keyOf={(group) => group.name}
        />
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
  return counts.unpriced_runs ? `${plural(counts.unpriced_runs, 'answer')} without a known price` : ''
}

function perAnswer(counts: Counts): number {
  return Math.round((10 * counts.steps) / counts.runs) / 10
}

function time(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}

const TOOLS: Column<ToolCounts>[] = [
  { head: 'Tool', cell: (tool) => <span className="font-medium break-all">{tool.name}</span> },
  { head: 'Calls', figures: true, cell: (tool) => count(tool.calls) },
  { head: 'Failed', figures: true, cell: (tool) => count(tool.failed) },
  { head: 'Denied', figures: true, wide: true, cell: (tool) => count(tool.denied) },
  {
    head: 'Time each',
    figures: true,
    wide: true,
    cell: (tool) => (tool.timed ? time(Math.round(tool.ms / tool.timed)) : '–'),
  },
]

const ERRORS: Column<{ name: string; runs: number }>[] = [
  { head: 'Kind', cell: (error) => <span className="font-medium">{error.name}</span> },
  { head: 'Answers', figures: true, cell: (error) => count(error.runs) },
]

const PURPOSES: Record<string, string> = {
  title: 'Titles',
  compact: 'Summaries',
  explain: 'Explanations',
  picture: 'Pictures',
  transcript: 'Transcripts',
}

const ASIDES: Column<AsideCounts>[] = [
  { head: 'For', cell: (aside) => <span className="font-medium">{PURPOSES[aside.name] ?? aside.name}</span> },
  { head: 'Calls', figures: true, cell: (aside) => count(aside.calls) },
  { head: 'Cost', figures: true, cell: (aside) => (aside.unpriced === aside.calls ? 'unknown' : money(aside.cost)) },
]

function columns(head: string): Column<Group>[] {
  return [
    { head, cell: (group) => <span className="font-medium break-all">{group.name || 'not known'}</span> },
    { head: 'Answers', figures: true, cell: (group) => count(group.runs) },
    { head: 'Read', figures: true, wide: true, cell: (group) => count(group.input) },
    { head: 'Written', figures: true, wide: true, cell: (group) => count(group.output) },
    {
      head: 'First word',
      figures: true,
      wide: true,
      cell: (group) => (group.first === null ? '–' : time(group.first)),
    },
    { head: 'Cost', figures: true, cell: costOf },
  ]
}
