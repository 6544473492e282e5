/** Times, sums and sizes as people read them. */

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000_000],
  ['month', 2_592_000_000],
  ['week', 604_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const whole = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })

/** How long ago an instant in ms was: `5 min. ago`, `yesterday`. */
export function age(at: number, now: number = Date.now()): string {
  const past = at - now
  const unit = UNITS.find(([, size]) => Math.abs(past) >= size)
  return unit ? relative.format(Math.trunc(past / unit[1]), unit[0]) : 'now'
}

/** An instant in ms, in full: `22 Nov 2026, 04:45`. */
export function moment(at: number): string {
  return exact.format(at)
}

const DAY = 86_400_000

/** The heading under which an instant stands in a list, newest first. */
export function dayOf(at: number, now: number = Date.now()): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0)
  if (at >= midnight) return 'Today'
  if (at >= midnight - DAY) return 'Yesterday'
  if (at >= midnight - 6 * DAY) return 'This week'
  if (at >= midnight - 29 * DAY) return 'This month'
  return new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric' }).format(at)
}

/** Nano-dollars as dollars; what is not known is said to be unknown, never nothing. */
export function money(nano: number | null | undefined): string {
  if (nano === null || nano === undefined) return 'unknown'
  const dollars = nano / 1e9
  return `$${dollars.toFixed(dollars !== 0 && dollars < 0.1 ? 4 : 2)}`
}

/** `1,234,567` */
export function count(value: number): string {
  return whole.format(value)
}

/** `1.2M` */
export function short(value: number): string {
  return compact.format(value)
}

/** `1 message`, `2 messages` */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${whole.format(value)} ${value === 1 ? one : many}`
}

/** `1 branch`, `3 branches`: things that a report counts, which it names in the plural. */
export function ofThings(value: number, things: string): string {
  const one = things === 'branches' ? 'branch' : things.replace(/s$/, '')
  return `${whole.format(value)} ${value === 1 ? one : things}`
}
