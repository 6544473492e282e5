import { expect, test } from 'vitest'
import type { Message } from '@/api/types'
import { joined } from '@/conversation/early'

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
