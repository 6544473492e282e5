import { expect, test } from 'vitest'
import { calendar, levelOf } from '@/home/calendar'

test('the last week is the current one, and its coming days are empty', () => {
  const weeks = calendar(2, new Date(2026, 10, 25, 13)) // a Wednesday
  expect(weeks.map((week) => week.days[0])).toEqual(['2026-11-16', '2026-11-23'])
  expect(weeks[1]?.days).toEqual(['2026-11-23', '2026-11-24', '2026-11-25', null, null, null, null])
})

test('days are consecutive, also where clocks change, and months are named where they begin', () => {
  const weeks = calendar(53, new Date(2026, 10, 22, 23, 59)) // a Sunday
  const days = weeks.flatMap((week) => week.days)
  expect(days).toHaveLength(371)
  expect(new Set(days).size).toBe(371)
  expect(days.at(-1)).toBe('2026-11-22')
  expect(weeks.map((week) => week.month).filter(Boolean)).toHaveLength(12)
})

test('busy days have higher levels, and a day with little is not a day with nothing', () => {
  expect([0, 1, 30, 60, 100].map((value) => levelOf(value, 100))).toEqual([0, 1, 3, 4, 4])
})
