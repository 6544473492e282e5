import { expect, test } from 'vitest'
import type { Conversation } from '@/api/types'
import { rowsOf } from '@/lists/rows'

test('each day has one heading, above its conversations', () => {
  const noon = new Date(2026, 10, 22, 12).getTime()
  const all = [0, 1, 30, 31].map((hours) => ({ id: `${hours}`, updated_at: noon - hours * 3_600_000 }) as Conversation)
  const rows = rowsOf(all, noon).map((row) => (row.kind === 'day' ? row.text : row.key))
  expect(rows).toEqual(['Today', '0', '1', 'Yesterday', '30', '31'])
})
