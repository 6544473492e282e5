const DAY = 86_400_000

/** Midnight (UTC) of the first of so many days that end today; 0 days = the beginning of time. */
export function sinceOf(days: number, now: number = Date.now()): number {
  return days ? Math.floor(now / DAY) * DAY - (days - 1) * DAY : 0
}

/** Every day from the first to today as `YYYY-MM-DD`, those on which nothing ran too; at least as many as asked for, at most 366. */
export function everyDay(names: readonly string[], days: number, now: number = Date.now()): string[] {
  const earliest = [...names].sort()[0]
  const first = days ? sinceOf(days, now) : earliest ? Date.parse(earliest) : now
  const count = Math.min(366, Math.floor(now / DAY) - Math.floor(first / DAY) + 1)
  return Array.from({ length: count }, (_, at) => new Date(now - (count - 1 - at) * DAY).toISOString().slice(0, 10))
}
