import { expect, test } from 'vitest'
import type { Message } from '@/api/types'
import { joined, putBack } from '@/conversation/early'

const some = (...ids: string[]) => ids.map((id): Message => ({ id, role: 'user', parts: [] }))
const idsOf = (messages: Message[] | null) => messages?.map(({ id }) => id).join('')

test('the first messages join the latest ones as soon as they meet', () => {
  expect(joined({ messages: some('a', 'b'), newer: 'b' }, some('x', 'y'))).toBeNull()
  expect(idsOf(joined({ messages: some('a', 'b', 'c'), newer: 'c' }, some('c', 'd')))).toBe('abcd')
  expect(idsOf(joined({ messages: some('a', 'b', 'c'), newer: null }, some('d', 'e')))).toBe('abcde')
})

test('a message in both keeps the state that the stream has given it', () => {
  const live: Message = { id: 'c', role: 'assistant', parts: [{ type: 'text', text: 'so far' }] }
  expect(joined({ messages: some('a', 'b', 'c'), newer: 'c' }, [live])?.at(-1)).toBe(live)
})

test('a restored message is put back where it was, and only into the list that had it', () => {
  const [message] = some('b')
  if (!message) throw new Error('there is a message')
  expect(idsOf(putBack(some('a', 'c', 'd'), message, 'c'))).toBe('abcd')
  expect(idsOf(putBack(some('a', 'b', 'c'), message, 'c'))).toBe('abc')
  expect(putBack(some('x', 'y'), message, 'c')).toBeNull()
  expect(putBack(some('x', 'y'), message, '')).toBeNull()
})
