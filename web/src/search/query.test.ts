import { expect, test } from 'vitest'
import { fitness, isNamed, offers, pieces, whole } from '@/search/query'

test('matches in a snippet are separated from the rest of its text', () => {
  const found = pieces('a \u0002b\u0003 <b>c</b> \u0002d\u0003')
  expect(found.map(({ text, hit }) => (hit ? `[${text}]` : text)).join('')).toBe('a [b] <b>c</b> [d]')
})

test('texts that start with the words rank above texts that contain them', () => {
  const texts = ['a rewal', 'the WAL grows', 'wal of a store', 'something else']
  expect(texts.map((text) => fitness(text, 'wal'))).toEqual([1, 2, 3, 0])
})

test('operators are suggested first, then their values', () => {
  const labels = (query: string) => offers(query).map((offer) => offer.label)
  expect(labels('')).toEqual([])
  expect(labels('pantry ro')).toEqual(['role:'])
  expect(labels('-h')).toEqual(['-has:'])
  expect(labels('pantry ')).toContain('after:')
  expect(labels('pantry')).toEqual([])
  expect(labels('role:')).toEqual(['role:user', 'role:assistant', 'role:system'])
  expect(labels('x -has:im')).toEqual(['-has:image'])
  expect(labels('has:image')).toEqual([])
  expect(labels('"a phrase')).toEqual([])
  expect(labels('http://x')).toEqual([])
  expect(labels('has:g')).toEqual(['has:image', 'has:reasoning'])
  expect(offers('x role:u')[0]?.query).toBe('x role:user ')
  expect(offers('x ro')[0]?.query).toBe('x role:')
})

test('agents, models and projects are suggested by name', () => {
  const known = { agent: ['default', 'claude-code'], model: ['big@anthropic', 'small@ollama'], project: ['My shop'] }
  const labels = (query: string) => offers(query, known).map((offer) => offer.label)
  expect(labels('x agent:')).toEqual(['agent:default', 'agent:claude-code'])
  expect(labels('-agent:Cl')).toEqual(['-agent:claude-code'])
  expect(labels('model:olla')).toEqual(['model:small@ollama'])
  expect(labels('project:my')).toEqual(['project:"My shop"'])
  expect(offers('x project:', known)[0]?.query).toBe('x project:"My shop" ')
  expect(offers('agent:', { agent: Array.from({ length: 40 }, (_, at) => `a${at}`) })).toHaveLength(12)
})

test('an operator without a value is left out of the query', () => {
  expect(['pantry role:', 'role:', 'x -has:', 'x foo:', 'x role:user'].map(whole)).toEqual([
    'pantry',
    '',
    'x',
    'x foo:',
    'x role:user',
  ])
})

test('a command is named by its whole words in any order', () => {
  expect(isNamed('Usage and cost', 'usage')).toBe(true)
  expect(isNamed('Settings: models', 'models settings')).toBe(true)
  expect(isNamed('Usage and cost', 'us')).toBe(false)
  expect(isNamed('Usage and cost', 'usage report')).toBe(false)
  expect(isNamed('Usage and cost', ' ')).toBe(false)
})
