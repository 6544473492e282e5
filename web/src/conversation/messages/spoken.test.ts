import { expect, test } from 'vitest'
import { spoken } from '@/conversation/messages/spoken'

test('code, formulas and signs of Markdown are not read', () => {
  const answer =
    '# Plan\n\nUse **bold** and `code`, see [the docs](https://x.y).\n\n```sh\nrm -rf /\n```\n\n- one\n- two\n\n$$x^2$$\n'
  expect(spoken(answer)).toEqual(['Plan', 'Use bold and code, see the docs.', 'one', 'two'])
})

test('tables are read row by row', () => {
  expect(spoken('| a | b |\n|---|---|\n| 1 | 2 |')).toEqual(['a   b', '1   2'])
})

test('long texts are split at the ends of sentences', () => {
  const pieces = spoken('This is a sentence of some words. '.repeat(20))
  expect(pieces.length).toBeGreaterThan(2)
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(200)
  expect(pieces.every((piece) => piece.endsWith('.'))).toBe(true)
})

test('a code block without an end is not read', () => {
  expect(spoken('Hello.\n```\nlet x')).toEqual(['Hello.'])
})
