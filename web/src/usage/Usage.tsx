import { clsx } from 'clsx'
import { ChartNoAxesColumn } from 'lucide-react'
import { type ReactNode, useMemo, useState } from 'react'
import {
  type AuxiliaryCounts,
  type Budget,
  type Counts,
  type Group,
  type Stats,
  type ToolCounts,
  useBudgets,
  useStats,
  useWindows,
} from '@/data/stats'
import { agentName } from '@/lists/agents'
import { text } from '@/text'
import { count, moment, money, short, spent, timeOf } from '@/ui/format'
import { Empty, Loaded } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { View } from '@/ui/View'
import { type Bar, Bars } from '@/usage/Bars'
import { dayAt, periods, sinceOf, wallTime } from '@/usage/days'

const SPANS: readonly [label: string, days: number][] = [
  [text.usage.ranges.all, 0],
  [text.usage.ranges.quarter, 90],
  [text.usage.ranges.month, 30],
  [text.usage.ranges.week, 7],
]

/** Tokens, cost and time by day, model, agent and project, plus tools and errors. */
export default function Usage() {
  const [days, setDays] = useState(0)
  const query = useStats(days ? (timeOf(dayAt(sinceOf(days, wallTime()))) ?? 0) : 0)
  return (
    <View
      title={text.usage.title}
      about={text.usage.about}
      actions={
        <fieldset className="flex rounded-lg bg-hover/70 p-0.5">
          <legend className="sr-only">{text.usage.range}</legend>
          {SPANS.map(([label, span]) => (
            <label
              key={label}
              className="grid h-8 cursor-pointer place-items-center rounded-md px-3 text-sm text-muted has-checked:bg-raised has-checked:text-ink has-focus-visible:outline-2 has-focus-visible:outline-focus max-md:h-11"
            >
              <input
                type="radio"
                name="span"
                className="sr-only"
                checked={days === span}
                onChange={() => setDays(span)}
              />
              {label}
            </label>
          ))}
        </fieldset>
      }
    >
      <div className="space-y-9">
        <Budgets />
        <Windows />
        <Loaded key={days} query={query}>
          {(stats) => <All stats={stats} days={days} />}
        </Loaded>
      </div>
    </View>
  )
}

/** The budgets and what is spent of them. Render nothing if there are none. */
function Budgets() {
  const query = useBudgets()
  if (query.data && !query.data.data.length) return null
  return (
    <Section title={text.usage.budgets}>
      <Loaded query={query} rows={1}>
        {({ data }) => (
          <Table label={text.usage.budgets} columns={BUDGETS} rows={data} keyOf={(budget) => budget.name} />
        )}
      </Loaded>
    </Section>
  )
}

/** The usage in the current periods that subscriptions limit. Render nothing if there is none. */
function Windows() {
  const query = useWindows()
  const used = query.data?.data.filter(({ runs, used }) => runs || used) ?? []
  if (query.data && !used.length) return null
  return (
    <Section title={text.usage.windows}>
      <Loaded query={query} rows={1}>
        {() => (
          <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-4">
            {used.map((window) => (
              <li
                key={`${window.agent} ${window.minutes}`}
                className="rounded-xl border border-line bg-raised p-4 text-xs text-muted"
              >
                <h3>{text.usage.windowOf(agentName(window.agent), window.minutes)}</h3>
                <p className="mt-1 text-lg font-semibold tracking-tight text-ink tabular-nums">
                  {window.used === null
                    ? spent(window.cost, window.unpriced)
                    : text.usage.percent(Math.round(window.used))}
                </p>
                {window.used !== null && (
                  <div aria-hidden className="mt-1 mb-1.5 h-1.5 overflow-hidden rounded-full bg-hover">
                    <div
                      className={clsx('h-full rounded-full', window.used >= 80 ? 'bg-warn' : 'bg-accent')}
                      style={{ width: `${Math.min(100, window.used)}%` }}
                    />
                  </div>
                )}
                <p className="tabular-nums">
                  {text.common.list([
                    text.usage.tokenCount(window.input + window.output),
                    ...(window.used === null ? [] : [spent(window.cost, window.unpriced)]),
                  ])}
                </p>
                {window.resets && <p>{text.usage.resetsAt(moment(window.until))}</p>}
                {window.projected_cost !== null && <p>{text.usage.projected(money(window.projected_cost))}</p>}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Section>
  )
}

/** Return a bar for each hour of the day. */
function hoursOf(hours: readonly Group[]): Bar[] {
  const known = new Map(hours.map((hour) => [hour.name, tokens(hour)]))
  return Array.from({ length: 24 }, (_, hour) => {
    const label = String(hour).padStart(2, '0')
    const value = known.get(label) ?? 0
    return { label: `${label}:00`, value, formatted: text.usage.tokenCount(value) }
  })
}

function All({ stats, days }: { stats: Stats; days: number }) {
  const { unit, all } = useMemo(() => periods(stats.days, days, wallTime()), [stats, days])
  if (!stats.total.runs) {
    return (
      <Empty icon={ChartNoAxesColumn} title={text.usage.empty}>
        {text.usage.emptyAbout}
      </Empty>
    )
  }
  const bars = (figureOf: (counts: Counts) => number, format: (value: number) => string) =>
    all.map((period) => {
      const value = figureOf(period)
      return {
        label: period.name,
        tick: unit === 'day' ? period.name.slice(5) : undefined,
        value,
        formatted: format(value),
      }
    })
  return (
    <div className="space-y-9">
      {stats.uncounted > 0 && (
        <p role="status" className="rounded-lg border border-warn/40 bg-warn-soft px-3 py-2 text-sm">
          {text.usage.uncounted(stats.uncounted)}
        </p>
      )}
      <dl className="grid grid-cols-2 gap-3 lg:grid-cols-5">
        <Sum name={text.usage.cost} value={costOf(stats.total)} note={unpriced(stats.total)} />
        <Sum
          name={text.usage.tokens}
          value={short(tokens(stats.total))}
          note={text.usage.tokensNote(short(stats.total.output), short(stats.total.cache_read))}
        />
        <Sum
          name={text.usage.responses}
          value={count(stats.total.runs)}
          note={text.usage.responsesNote(stepsPerResponse(stats.total), stats.total.failed)}
        />
        {stats.total.first !== null && (
          <Sum
            name={text.usage.firstToken}
            value={time(stats.total.first)}
            note={stats.total.rate === null ? '' : text.usage.rate(Math.round(stats.total.rate))}
          />
        )}
        <Sum
          name={text.usage.stored}
          value={count(stats.conversations)}
          note={text.usage.storedNote(stats.conversations, stats.messages)}
        />
      </dl>
      <Section title={text.usage.tokensBy[unit]}>
        <Bars label={text.usage.tokensBy[unit]} bars={bars(tokens, text.usage.tokenCount)} tick={short} />
      </Section>
      {stats.total.cost > 0 && (
        <Section title={text.usage.costBy[unit]}>
          <Bars label={text.usage.costBy[unit]} bars={bars((counts) => counts.cost, money)} tick={money} />
        </Section>
      )}
      <Section title={text.usage.contextBy[unit]}>
        <Bars
          label={text.usage.contextBy[unit]}
          bars={bars((counts) => counts.context, text.usage.tokenCount)}
          tick={short}
        />
      </Section>
      {stats.hours_of_day.length > 0 && (
        <Section title={text.usage.byHour}>
          <Bars label={text.usage.byHour} bars={hoursOf(stats.hours_of_day)} tick={short} />
        </Section>
      )}
      <Section title={text.usage.byModel}>
        <Table
          label={text.usage.byModel}
          columns={columns(text.usage.model)}
          rows={stats.models}
          keyOf={(group) => group.name}
        />
      </Section>
      <Section title={text.usage.byAgent}>
        <Table
          label={text.usage.byAgent}
          columns={columns(text.usage.agent, agentName)}
          rows={stats.agents}
          keyOf={(group) => group.name}
        />
      </Section>
      <Section title={text.usage.byProject}>
        <Table
          label={text.usage.byProject}
          columns={columns(text.usage.project)}
          rows={stats.projects}
          keyOf={(group) => group.name}
        />
      </Section>
      {stats.tools.length > 0 && (
        <Section title={text.usage.byTool}>
          <Table label={text.usage.byTool} columns={TOOLS} rows={stats.tools} keyOf={(tool) => tool.name} />
        </Section>
      )}
      {stats.errors.length > 0 && (
        <Section title={text.usage.errors}>
          <Table label={text.usage.errors} columns={ERRORS} rows={stats.errors} keyOf={(error) => error.name} />
        </Section>
      )}
      {stats.asides.length > 0 && (
        <Section title={text.usage.auxiliary}>
          <Table label={text.usage.auxiliary} columns={AUXILIARY} rows={stats.asides} keyOf={(call) => call.name} />
        </Section>
      )}
      <Section title={text.usage.by[unit]}>
        <Table
          label={text.usage.by[unit]}
          columns={columns(text.usage.units[unit])}
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

function costOf({ cost, unpriced_runs: unpriced }: Counts): string {
  return spent(cost, unpriced)
}

function unpriced(counts: Counts): string {
  return counts.unpriced_runs ? text.usage.unpriced(counts.unpriced_runs) : ''
}

function stepsPerResponse(counts: Counts): number {
  return Math.round((10 * counts.steps) / counts.runs) / 10
}

function time(ms: number): string {
  return ms < 1000 ? text.time.ms(ms) : text.time.seconds(ms / 1000)
}

const TOOLS: Column<ToolCounts>[] = [
  { head: text.usage.tool, cell: (tool) => <span className="font-medium break-all">{tool.name}</span> },
  { head: text.usage.calls, figures: true, cell: (tool) => count(tool.calls) },
  { head: text.usage.failed, figures: true, cell: (tool) => count(tool.failed) },
  { head: text.usage.denied, figures: true, wide: true, cell: (tool) => count(tool.denied) },
  {
    head: text.usage.averageTime,
    figures: true,
    wide: true,
    cell: (tool) => (tool.timed ? time(Math.round(tool.ms / tool.timed)) : '–'),
  },
]

function spentOf({ cost, tokens: most, spent: used }: Budget): string {
  const parts = [
    cost ? limited(used && spent(used.cost, used.unpriced), money(cost)) : '',
    most ? limited(used && count(used.tokens), text.usage.tokenCount(most)) : '',
  ]
  return text.common.list(parts.filter(Boolean))
}

function limited(used: string | null, limit: string): string {
  return used === null ? text.usage.upTo(limit) : text.usage.spentOf(used, limit)
}

const BUDGETS: Column<Budget>[] = [
  {
    head: text.usage.budget,
    cell: (budget) => (
      <>
        <span className="font-medium">
          {text.usage.budgetFor(
            budget.name,
            text.usage.periods[budget.per] ?? budget.per,
            text.common.list(
              [budget.user, budget.project, budget.agent].filter((name) => name !== null && name !== ''),
            ),
          )}
        </span>
        {budget.problem && <p className="text-xs text-warn">{budget.problem}</p>}
      </>
    ),
  },
  { head: text.usage.spent, figures: true, cell: spentOf },
  {
    head: text.usage.used,
    figures: true,
    cell: ({ share }) =>
      share === null ? (
        '–'
      ) : (
        <span className={share >= 0.8 ? 'font-semibold text-warn' : ''}>
          {Math.floor(Math.round(share * 10_000) / 100)}%
        </span>
      ),
  },
  {
    head: text.usage.resets,
    wide: true,
    figures: true,
    cell: (budget) => (budget.resets_at ? moment(budget.resets_at) : '–'),
  },
]

const ERRORS: Column<{ name: string; runs: number }>[] = [
  { head: text.usage.error, cell: (error) => <span className="font-medium">{error.name}</span> },
  { head: text.usage.responses, figures: true, cell: (error) => count(error.runs) },
]

const AUXILIARY: Column<AuxiliaryCounts>[] = [
  {
    head: text.usage.purpose,
    cell: (call) => <span className="font-medium">{text.usage.purposes[call.name] ?? call.name}</span>,
  },
  { head: text.usage.calls, figures: true, cell: (call) => count(call.calls) },
  {
    head: text.usage.cost,
    figures: true,
    cell: (call) => spent(call.cost, call.unpriced),
  },
]

function columns(head: string, nameOf = (name: string) => name): Column<Group>[] {
  return [
    {
      head,
      cell: (group) => <span className="font-medium break-all">{nameOf(group.name) || text.common.unknown}</span>,
    },
    { head: text.usage.responses, figures: true, cell: (group) => count(group.runs) },
    { head: text.usage.input, figures: true, wide: true, cell: (group) => count(group.input) },
    { head: text.usage.output, figures: true, wide: true, cell: (group) => count(group.output) },
    {
      head: text.usage.firstToken,
      figures: true,
      wide: true,
      cell: (group) => (group.first === null ? '–' : time(group.first)),
    },
    { head: text.usage.cost, figures: true, cell: costOf },
  ]
}
