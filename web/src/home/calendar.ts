import { language } from '@/language'

/** A column of the calendar. */
export interface Week {
  /** The days from Monday to Sunday as `YYYY-MM-DD`. Null means that the day has not come yet. */
  days: [string, ...(string | null)[]]
  /** The name of the month if it begins in this week, or else empty. */
  month: string
}

const month = new Intl.DateTimeFormat(language, { month: 'short' })

/** Return the given number of weeks in local time, the last of which is the current one. */
export function calendar(weeks: number, now: Date = new Date()): Week[] {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate())
  const monday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - ((today.getDay() + 6) % 7))
  return Array.from({ length: weeks }, (_, at) => {
    const dates = Array.from(
      { length: 7 },
      (_, day) => new Date(monday.getFullYear(), monday.getMonth(), monday.getDate() - 7 * (weeks - 1 - at) + day),
    )
    const begins = dates.find((date) => date.getDate() === 1 && date <= today)
    const [first = '', ...others] = dates.map((date) => (date <= today ? nameOf(date) : null)) as [
      string,
      ...(string | null)[],
    ]
    return { days: [first, ...others], month: begins && at < weeks - 2 ? month.format(begins) : '' }
  })
}

function nameOf(date: Date): string {
  const padded = (value: number) => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${padded(date.getMonth() + 1)}-${padded(date.getDate())}`
}

/** Return the shade of a day, from 0 for nothing to 4 for the busiest days. */
export function levelOf(value: number, greatest: number): number {
  if (value <= 0) return 0
  return Math.min(4, Math.max(1, Math.ceil(4 * Math.sqrt(value / greatest))))
}
