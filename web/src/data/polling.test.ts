import { afterEach, expect, test } from 'vitest'
import { noteReached } from '@/api/online'
import { pause } from '@/data/polling'

afterEach(() => noteReached(true))

test('the pause between requests grows while the server does not answer', () => {
  const pauses = Array.from({ length: 8 }, () => {
    noteReached(false)
    return pause(2_000)
  })
  expect(pauses).toEqual([4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000])
  noteReached(true)
  expect(pause(2_000)).toBe(2_000)
})
