import { expect, test } from 'vitest'
import type { Group } from '@/data/stats'
import { steps } from '@/usage/chart'
import { periods, sinceOf } from '@/usage/days'

test('an axis has few round steps and includes the greatest value', () => {
  for (const greatest of [0.0007, 1, 7, 99, 12_345, 1e9]) {
    const axis = steps(greatest)
    expect(axis.at(-1)).toBeGreaterThanOrEqual(greatest)
    expect(axis.length).toBeLessThan(8)
  }
  expect(steps(0)).toEqual([0, 1])
})

const NOW = Date.parse('2026-11-22T10:00:00Z')

/** A day with the given number of responses, each with a context of 100 tokens and, on odd days, 10 ms to the first token. */
function day(name: string, runs = 1): Group {
  const timed = Number(name.slice(-1)) % 2 ? runs : 0
  const nothing = {
    failed: 0,
    cache_read: 0,
    cache_write: 0,
    reasoning: 0,
    cost: 0,
    unpriced_runs: 0,
    ms: 0,
    timed_output: 0,
  }
  const sums = {
    runs,
    input: runs,
    output: runs,
    steps: runs,
    contexts: runs * 100,
    firsts: timed,
    first_ms: timed * 10,
  }
  return { name, ...nothing, ...sums, context: 100, first: timed ? 10 : null, rate: null }
}

test('a chart includes days without runs', () => {
  const names = (days: Group[], asked: number) => periods(days, asked, NOW).all.map((one) => one.name)
  expect(names([day('2026-11-21')], 3)).toEqual(['2026-11-20', '2026-11-21', '2026-11-22'])
  expect(names([day('2026-11-21'), day('2026-11-20')], 0)).toEqual(['2026-11-20', '2026-11-21', '2026-11-22'])
  expect(names([], 0)).toEqual(['2026-11-22'])
  expect(new Date(sinceOf(3, NOW)).toISOString()).toBe('2026-11-20T00:00:00.000Z')
})

test('long time ranges use a unit that fits the chart', () => {
  for (const [earliest, unit, first] of [
    ['2026-09-01', 'day', '2026-09-01'],
    ['2025-01-02', 'week', '2024-12-30'],
    ['2023-08-01', 'month', '2023-08'],
    ['2001-05-05', 'year', '2001'],
  ] as const) {
    const days = [day('2026-11-22', 3), day('2026-11-21', 2), day(earliest)]
    const result = periods(days, 0, NOW)
    expect([result.unit, result.all[0]?.name, result.all.length <= 120]).toEqual([unit, first, true])
    expect(result.all.reduce((sum, one) => sum + one.runs, 0)).toBe(6)
  }
  const month = periods([day('2026-11-22', 3), day('2026-11-21', 2), day('2023-08-01')], 0, NOW).all.at(-1)
  expect([month?.runs, month?.context, month?.first, month?.rate]).toEqual([5, 100, 10, null])
})
