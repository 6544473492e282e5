import { expect, test } from 'vitest'
import { fitness, offers, pieces, whole } from '@/search/query'

test('matches of a snippet are told from the rest, whatever else stands in it', () => {
  const found = pieces('a \u0002b\u0003 <b>c</b> \u0002d\u0003')
  expect(found.map(({ text, hit }) => (hit ? `[${text}]` : text)).join('')).toBe('a [b] <b>c</b> [d]')
})

test('a text that begins with the words goes before one that has them in the middle', () => {
  const texts = ['a rewal', 'the WAL grows', 'wal of a store', 'something else']
  expect(texts.map((text) => fitness(text, 'wal'))).toEqual([1, 2, 3, 0])
})

test('operators are offered for what is typed, then their values', () => {
  const words = (query: string) => offers(query).map((offer) => offer.words)
  expect(words('')).toEqual([])
  expect(words('pantry ro')).toEqual(['role:'])
  expect(words('-h')).toEqual(['-has:'])
  expect(words('pantry ')).toContain('after:')
  expect(words('pantry')).toEqual([])
  expect(words('role:')).toEqual(['role:user', 'role:assistant', 'role:system'])
  expect(words('x -has:im')).toEqual(['-has:image'])
  expect(words('has:image')).toEqual([])
  expect(words('"a phrase')).toEqual([])
  expect(words('http://x')).toEqual([])
  expect(words('has:g')).toEqual(['has:image', 'has:reasoning'])
  expect(offers('x role:u')[0]?.query).toBe('x role:user ')
  expect(offers('x ro')[0]?.query).toBe('x role:')
})

test('agents, models and projects are offered as they are called here', () => {
  const known = { agent: ['default', 'claude-code'], model: ['big@anthropic', 'small@ollama'], project: ['My shop'] }
  const words = (query: string) => offers(query, known).map((offer) => offer.words)
  expect(words('x agent:')).toEqual(['agent:default', 'agent:claude-code'])
  expect(words('-agent:Cl')).toEqual(['-agent:claude-code'])
  expect(words('model:olla')).toEqual(['model:small@ollama'])
  expect(words('project:my')).toEqual(['project:"My shop"'])
  expect(offers('x project:', known)[0]?.query).toBe('x project:"My shop" ')
  expect(offers('agent:', { agent: Array.from({ length: 40 }, (_, at) => `a${at}`) })).toHaveLength(12)
})

test('an operator without a value is not asked for yet', () => {
  expect(['pantry role:', 'role:', 'x -has:', 'x foo:', 'x role:user'].map(whole)).toEqual([
    'pantry',
    '',
    'x',
    'x foo:',
    'x role:user',
  ])
})
