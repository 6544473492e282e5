import { expect, test } from 'vitest'
import { fitness, pieces } from '@/search/query'

test('matches of a snippet are told from the rest, whatever else stands in it', () => {
  const found = pieces('a \u0002b\u0003 <b>c</b> \u0002d\u0003')
  expect(found.map(({ text, hit }) => (hit ? `[${text}]` : text)).join('')).toBe('a [b] <b>c</b> [d]')
})

test('a text that begins with the words goes before one that has them in the middle', () => {
  const texts = ['a rewal', 'the WAL grows', 'wal of a store', 'something else']
  expect(texts.map((text) => fitness(text, 'wal'))).toEqual([1, 2, 3, 0])
})
