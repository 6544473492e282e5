import type { Counts, Group } from '@/data/stats'

const DAY = 86_400_000
/** Maximum number of bars in a chart. */
const MOST = 100
/** Maximum number of years in a chart. Older dates come from wrong clocks. */
const LONGEST = 400

/** Return midnight of the first of the given number of days that end today. 0 days means all time. */
export function sinceOf(days: number, now: number = Date.now()): number {
  return days ? Math.floor(now / DAY) * DAY - (days - 1) * DAY : 0
}

/** Return the time as if the clock on the wall were UTC, so that days of local time can be counted like those of UTC. */
export function wallTime(now: number = Date.now()): number {
  return now - new Date(now).getTimezoneOffset() * 60_000
}

export type Unit = 'day' | 'week' | 'month' | 'year'

/** Return the period of a day (`YYYY-MM-DD`): the day, the Monday of its week, `YYYY-MM` or `YYYY`. */
function periodOf(day: string, unit: Unit): string {
  if (unit === 'month') return day.slice(0, 7)
  if (unit === 'year') return day.slice(0, 4)
  const at = Date.parse(day)
  return unit === 'day' ? day : dayAt(at - ((new Date(at).getUTCDay() + 6) % 7) * DAY)
}

export function dayAt(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

/** Return the periods of a time range in days (0 = all time), oldest first, in the shortest unit that fits a chart. */
export function periods(
  days: readonly Group[],
  asked: number,
  now: number = Date.now(),
): { unit: Unit; all: readonly Group[] } {
  const known = new Map(days.map((day) => [day.name, day]))
  const earliest = days.map((day) => day.name).sort()[0]
  const first = asked ? sinceOf(asked, now) : Math.min(now, earliest ? Date.parse(earliest) : now)
  const span = Math.floor(now / DAY) - Math.floor(first / DAY) + 1
  const unit = span <= MOST ? 'day' : span <= MOST * 7 ? 'week' : span <= MOST * 30 ? 'month' : 'year'
  const grouped = new Map<string, Group[]>()
  for (let at = Math.floor(first / DAY) * DAY; at <= now; at += DAY) {
    const day = dayAt(at)
    const name = periodOf(day, unit)
    const [within, group] = [grouped.get(name) ?? [], known.get(day)]
    if (group) within.push(group)
    grouped.set(name, within)
  }
  return { unit, all: [...grouped].slice(-LONGEST).map(([name, within]) => ({ ...joined(within), name })) }
}

type Sum = Exclude<keyof Counts, 'context' | 'first' | 'rate'>
const NOTHING: Record<Sum, number> = {
  runs: 0,
  failed: 0,
  input: 0,
  output: 0,
  cache_read: 0,
  cache_write: 0,
  reasoning: 0,
  cost: 0,
  unpriced_runs: 0,
  steps: 0,
  ms: 0,
  timed_output: 0,
  first_ms: 0,
  firsts: 0,
  contexts: 0,
}

/** Combine the counts of several days into sums, and means over all responses. */
function joined(days: readonly Counts[]): Counts {
  const sum = { ...NOTHING }
  for (const day of days) for (const name of Object.keys(NOTHING) as Sum[]) sum[name] += day[name]
  return {
    ...sum,
    context: sum.runs ? Math.round(sum.contexts / sum.runs) : 0,
    first: sum.firsts ? Math.round(sum.first_ms / sum.firsts) : null,
    rate: sum.ms && sum.timed_output ? (sum.timed_output * 1000) / sum.ms : null,
  }
}
