import { expect, test, vi } from 'vitest'

vi.stubGlobal('location', { search: '?agent=codex', hash: '' })
const { countOf, EVERYTHING, filterIn, withFilter } = await import('@/lists/filter')

test('a filter is read from an address as it was written', () => {
  const filter = {
    shelf: 'archived' as const,
    project: 'p 1',
    agent: 'claude-code',
    model: 'gpt-5@openai',
    host: 'laptop',
    tag: 'release',
    from: '2026-11-01',
    to: '',
  }
  const search = withFilter('?path=src%2Fa.ts', filter)
  expect(filterIn(search)).toEqual(filter)
  expect(new URLSearchParams(search).get('path')).toBe('src/a.ts')
  expect(countOf(filter)).toBe(6)
})

test('without filters, an address stays as it is', () => {
  expect(withFilter('', EVERYTHING)).toBe('')
  expect(withFilter('?view=changes&agent=codex', EVERYTHING)).toBe('view=changes')
})

test('unknown shelves and invalid days are ignored', () => {
  expect(filterIn('?list=everything&from=yesterday&to=2026-13-45&agent=')).toEqual(EVERYTHING)
})
