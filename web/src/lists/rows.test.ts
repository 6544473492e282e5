import { expect, test } from 'vitest'
import type { Conversation, Relative } from '@/api/types'
import { rowsOf, withCalls, withChildren } from '@/lists/rows'

test('each day has one heading, above its conversations', () => {
  const noon = new Date(2026, 10, 22, 12).getTime()
  const all = [0, 1, 30, 31].map((hours) => ({ id: `${hours}`, updated_at: noon - hours * 3_600_000 }) as Conversation)
  const rows = rowsOf(all, undefined, noon).map((row) => ('text' in row ? row.text : row.key))
  expect(rows).toEqual(['Today', '0', '1', 'Yesterday', '30', '31'])
})

test('each project has a heading, ordered by its newest conversation', () => {
  const all = ['b', 'a', 'b', 'a'].map((project, at) => ({ id: `${at}`, project, updated_at: 9 - at }) as Conversation)
  const rows = rowsOf(all, new Map([['a', 'Alpha']])).map((row) => ('text' in row ? row.text : row.key))
  expect(rows).toEqual(['b', '0', '2', 'Alpha', '1', '3'])
})

test('pinned conversations come first, below their own heading', () => {
  const all = ['p', 'a', 'b'].map((id) => ({ id, updated_at: 9, pinned_at: id === 'p' ? 1 : null }) as Conversation)
  const rows = rowsOf(all, undefined, 9).map((row) => ('text' in row ? row.text : row.key))
  expect(rows).toEqual(['Pinned', 'p', 'Today', 'a', 'b'])
})

test('sub-agents are shown below their conversation when it is unfolded', () => {
  const rows = rowsOf(['a', 'b'].map((id) => ({ id, updated_at: 1 }) as Conversation))
  const grandchild = { id: 'c2', children: [] as Relative[] } as Relative
  const below = [{ id: 'c1', children: [grandchild] } as Relative]
  const keys = (open: boolean) => withChildren(rows, 'a', below, open).map((row) => row.key)
  expect(keys(true).slice(1)).toEqual(['a', 'fold a', 'c1', 'c2', 'b'])
  expect(keys(false).slice(1)).toEqual(['a', 'fold a', 'b'])
  expect(withChildren(rows, 'a', [], true)).toEqual(rows)
})

test('conversations of API calls are one entry until it is unfolded', () => {
  const rows = rowsOf(['a'].map((id) => ({ id, updated_at: 1 }) as Conversation))
  const loaded = ['c1', 'c2'].map((id) => ({ id, updated_at: 1 }) as Conversation)
  const group = { calls: 70, latest_call: 1 }
  const keys = (shown: Conversation[] | null, more: boolean) =>
    withCalls(rows, group, shown, more).map(({ key }) => key)
  expect(keys(null, false)).toEqual(['calls', ...rows.map(({ key }) => key)])
  expect(keys(loaded, true).slice(0, 4)).toEqual(['calls', 'c1', 'c2', 'more calls'])
  expect(withCalls(rows, { calls: 0, latest_call: null }, null, false)).toEqual(rows)
})
