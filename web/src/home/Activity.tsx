import { clsx } from 'clsx'
import { CalendarDays, Table2 } from 'lucide-react'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { open as openPanel } from '@/app/panels'
import { type ActivityDay, useActivity } from '@/data/stats'
import { calendar, levelOf, type Week } from '@/home/calendar'
import { EVERYTHING, setFilter } from '@/lists/filter'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { count, dayName, short, spent } from '@/ui/format'
import { Loaded } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'

const NOTHING = { runs: 0, cost: 0, unpriced: 0, input: 0, output: 0 }
/** Least and greatest size of a day, the gap between days, and the width of the names of weekdays with their gap, in px. */
const [SMALLEST, LARGEST, GAP, NAMES] = [12, 18, 3, 37]

/** The activity of each day of the last year as a calendar, or as a table. The number of weeks depends on the width. */
export function Activity() {
  const query = useActivity()
  const [asTable, setAsTable] = useState(false)
  const [at, setAt] = useState('')
  const box = useRef<HTMLElement>(null)
  const { weeks, size } = useFit(box)
  const days = useMemo(() => new Map((query.data ?? []).map((day) => [day.day, day])), [query.data])
  const shown = useMemo(() => calendar(weeks), [weeks])
  const first = shown[0]?.days[0] ?? ''
  const within = (query.data ?? []).filter(({ day }) => day >= first)
  const sum = within.reduce((sum, day) => added(sum, day), NOTHING)
  return (
    <section ref={box} aria-label={text.home.activity} className="min-w-0">
      <div className="mb-2 flex min-h-8 flex-wrap items-center gap-x-4">
        <h2 className="grow text-sm font-semibold">{text.home.activity}</h2>
        {query.data && (
          <>
            <p className="text-xs text-muted tabular-nums max-sm:order-last max-sm:w-full">
              {text.home.total(weeks, facts(sum))}
            </p>
            <IconButton label={asTable ? text.home.asCalendar : text.home.asTable} onClick={() => setAsTable(!asTable)}>
              {asTable ? <CalendarDays size={16} aria-hidden /> : <Table2 size={16} aria-hidden />}
            </IconButton>
          </>
        )}
      </div>
      <Loaded query={query}>
        {() =>
          asTable ? (
            <div className="max-h-72 overflow-y-auto">
              <Table
                label={text.home.activity}
                columns={COLUMNS}
                rows={within.filter(({ runs }) => runs).reverse()}
                keyOf={({ day }) => day}
              />
            </div>
          ) : (
            <Days weeks={shown} days={days} size={size} at={at} choose={setAt} />
          )
        }
      </Loaded>
    </section>
  )
}

/** The calendar, and the usage of the chosen day. */
function Days(props: CalendarProps) {
  const { days, at } = props
  const chosen = at && { ...NOTHING, ...days.get(at), day: at }
  return (
    <>
      <Calendar {...props} />
      <div className="mt-1.5 flex min-h-9 flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted max-md:min-h-11">
        {chosen ? (
          <>
            <p role="status" className="tabular-nums">
              {dayName(chosen.day)}: {facts(chosen)}
            </p>
            {chosen.runs > 0 && (
              <Button
                look="quiet"
                className="underline"
                onClick={() => {
                  setFilter({ ...EVERYTHING, from: chosen.day, to: chosen.day })
                  if (!matchMedia('(min-width: 48rem)').matches) openPanel('drawer')
                }}
              >
                {text.home.showDay}
              </Button>
            )}
          </>
        ) : (
          <p>{text.home.hint}</p>
        )}
        <Legend />
      </div>
    </>
  )
}

interface CalendarProps {
  weeks: readonly Week[]
  days: ReadonlyMap<string, ActivityDay>
  size: number
  at: string
  choose: (day: string) => void
}

/** A grid with a column for each week. One cell is in the tab order; the arrow keys move to others. */
function Calendar({ weeks, days, size, at, choose }: CalendarProps) {
  const grid = useRef<HTMLTableElement>(null)
  const top = Math.max(0, ...weeks.flatMap((week) => week.days.map((day) => days.get(day ?? '')?.runs ?? 0)))
  const all = weeks.flatMap((week) => week.days.filter((day) => day !== null))
  const reachable = at || all.at(-1)

  function move(event: KeyboardEvent) {
    const by = { ArrowRight: 7, ArrowLeft: -7, ArrowDown: 1, ArrowUp: -1 }[event.key]
    const from = (event.target as HTMLElement).dataset.day ?? ''
    const to = event.key === 'Home' ? all[0] : event.key === 'End' ? all.at(-1) : by && all[all.indexOf(from) + by]
    if (!to) return
    event.preventDefault()
    choose(to)
    grid.current?.querySelector<HTMLElement>(`[data-day="${to}"]`)?.focus()
  }

  return (
    <table
      ref={grid}
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table whose cells can be chosen is a grid
      role="grid"
      aria-label={text.home.calendar}
      onKeyDown={move}
      className="-mx-[3px] border-separate border-spacing-[3px] text-[0.6875rem] text-muted"
    >
      <thead>
        <tr>
          <td className="w-7" />
          {weeks.map((week) => (
            <td key={week.days[0]} className="relative h-4 p-0">
              <span className="absolute bottom-0 left-0 whitespace-nowrap">{week.month}</span>
            </td>
          ))}
        </tr>
      </thead>
      <tbody>
        {text.home.weekdays.map((name, row) => (
          <tr key={name}>
            <th scope="row" className="w-7 p-0 text-left leading-none font-normal">
              <span className={clsx(row % 2 === 1 && 'sr-only')}>{name}</span>
            </th>
            {weeks.map((week) => {
              const day = week.days[row]
              if (!day) return <td key={week.days[0]} className="p-0" />
              const found = { ...NOTHING, ...days.get(day) }
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the arrow keys, which the table handles, choose a day too
                <td
                  key={week.days[0]}
                  // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: as above
                  role="gridcell"
                  data-day={day}
                  tabIndex={day === reachable ? 0 : -1}
                  aria-selected={day === at}
                  aria-label={`${dayName(day)}: ${facts(found)}`}
                  title={`${dayName(day)}: ${facts(found)}`}
                  onClick={() => choose(day)}
                  onFocus={() => choose(day)}
                  style={{ width: size, height: size, minWidth: size }}
                  className={clsx(
                    'cursor-pointer rounded-[3px] p-0 outline-offset-1 aria-selected:ring-2 aria-selected:ring-ink',
                    LEVELS[levelOf(found.runs, top)],
                  )}
                />
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const LEVELS = ['bg-hover', 'level-1', 'level-2', 'level-3', 'bg-accent']

function Legend() {
  return (
    <p aria-hidden className="ml-auto flex items-center gap-1">
      {text.home.less}
      {LEVELS.map((look) => (
        <span key={look} className={clsx('size-3 rounded-[3px]', look)} />
      ))}
      {text.home.more}
    </p>
  )
}

type Sum = Omit<ActivityDay, 'day'>

function added(one: Sum, other: Sum): Sum {
  return {
    runs: one.runs + other.runs,
    cost: one.cost + other.cost,
    unpriced: one.unpriced + other.unpriced,
    input: one.input + other.input,
    output: one.output + other.output,
  }
}

/** Return the responses, tokens and cost as text. */
function facts({ runs, input, output, cost, unpriced }: Sum): string {
  if (!runs) return text.home.nothing
  return [
    text.home.responses(runs),
    text.home.tokens(short(input + output)),
    (cost > 0 || unpriced > 0) && spent(cost, unpriced),
  ]
    .filter(Boolean)
    .join(' · ')
}

const COLUMNS: Column<ActivityDay>[] = [
  { head: text.usage.units.day, cell: ({ day }) => <span className="whitespace-nowrap">{dayName(day)}</span> },
  { head: text.usage.responses, figures: true, cell: ({ runs }) => count(runs) },
  { head: text.usage.tokens, figures: true, wide: true, cell: ({ input, output }) => short(input + output) },
  { head: text.usage.cost, figures: true, cell: ({ cost, unpriced }) => spent(cost, unpriced) },
]

/** Return the number of weeks that fit the width of an element, at most a year, and the size of a day in px. */
function useFit(box: { current: HTMLElement | null }): { weeks: number; size: number } {
  const [fit, setFit] = useState({ weeks: 53, size: SMALLEST })
  useEffect(() => {
    if (!box.current) return
    const observer = new ResizeObserver(([entry]) => {
      const width = (entry?.contentRect.width ?? 0) - NAMES
      const weeks = Math.max(4, Math.min(53, Math.floor(width / (SMALLEST + GAP))))
      setFit({ weeks, size: Math.max(SMALLEST, Math.min(LARGEST, Math.floor(width / weeks) - GAP)) })
    })
    observer.observe(box.current)
    return () => observer.disconnect()
  }, [box])
  return fit
}
