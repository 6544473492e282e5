import { expect, test } from 'vitest'
import type { Conversation } from '@/api/types'
import { rowsOf } from '@/lists/rows'

test('each day has one heading, above its conversations', () => {
  const noon = new Date(2026, 10, 22, 12).getTime()
  const all = [0, 1, 30, 31].map((hours) => ({ id: `${hours}`, updated_at: noon - hours * 3_600_000 }) as Conversation)
  const rows = rowsOf(all, undefined, noon).map((row) => (row.kind === 'one' ? row.key : row.text))
  expect(rows).toEqual(['Today', '0', '1', 'Yesterday', '30', '31'])
})

test('each project has a heading, ordered by its newest conversation', () => {
  const all = ['b', 'a', 'b', 'a'].map((project, at) => ({ id: `${at}`, project, updated_at: 9 - at }) as Conversation)
  const rows = rowsOf(all, new Map([['a', 'Alpha']])).map((row) => (row.kind === 'one' ? row.key : row.text))
  expect(rows).toEqual(['b', '0', '2', 'Alpha', '1', '3'])
})
