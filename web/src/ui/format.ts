import { dateLocale, language } from '@/language'
import { text } from '@/text'

/** Format for times, sums and sizes. */

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000_000],
  ['month', 2_592_000_000],
  ['week', 604_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]

const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' })
const whole = new Intl.NumberFormat(language)
const compact = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 })
const exact = new Intl.DateTimeFormat(dateLocale, { dateStyle: 'medium', timeStyle: 'short' })

/** Return a relative time for a timestamp in ms: `5 min. ago`, `yesterday`. */
export function age(at: number, now: number = Date.now()): string {
  const past = at - now
  const unit = UNITS.find(([, size]) => Math.abs(past) >= size)
  return unit ? relative.format(Math.trunc(past / unit[1]), unit[0]) : text.time.now
}

/** Return a full timestamp: `22 Nov 2026, 04:45`. */
export function moment(at: number): string {
  return exact.format(at)
}

/** Format a day (`YYYY-MM-DD`): `22 Nov 2026`. */
export function dayName(day: string): string {
  return date.format(timeOf(day))
}

const date = new Intl.DateTimeFormat(dateLocale, { day: 'numeric', month: 'short', year: 'numeric' })

/** Return the days from one timestamp to another: `3 – 5 Nov 2026`, or a single day. */
export function span(from: number, to: number): string {
  return date.formatRange(Math.min(from, to), to)
}

const DAY = 86_400_000

/** Return the date heading for a timestamp in a list. */
export function dayOf(at: number, now: number = Date.now()): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0)
  if (at >= midnight) return text.time.today
  if (at >= midnight - DAY) return text.time.yesterday
  if (at >= midnight - 6 * DAY) return text.time.week
  if (at >= midnight - 29 * DAY) return text.time.month
  return new Intl.DateTimeFormat(language, { month: 'long', year: 'numeric' }).format(at)
}

/** Format nano-dollars as dollars. A missing price is `unknown`, never zero. */
export function money(nano: number | null | undefined): string {
  if (nano === null || nano === undefined) return text.common.unknown
  const dollars = nano / 1e9
  return `$${dollars.toFixed(dollars !== 0 && dollars < 0.1 ? 4 : 2)}`
}

/** Format a sum in nano-dollars with the number of runs that it does not include: `$1.20 + 3 unpriced`. */
export function spent(nano: number | null, unpriced: number): string {
  if (!unpriced) return money(nano)
  return nano ? `${money(nano)} + ${text.common.unpriced(unpriced)}` : text.common.unpriced(unpriced)
}

/** `1,234,567` */
export function count(value: number): string {
  return whole.format(value)
}

/** `1.2M` */
export function short(value: number): string {
  return compact.format(value)
}

/** Return the first ms of a day (`YYYY-MM-DD`) in local time, or of the day after it. */
export function timeOf(day: string, after = 0): number | undefined {
  if (!day) return undefined
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number)
  return Math.max(0, new Date(year, month - 1, date + after).getTime())
}
