import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Pace } from '@/conversation/replay/pace'
import type { Played } from '@/conversation/replay/play'
import { framesOf, timeline } from '@/conversation/replay/timeline'

vi.stubGlobal('navigator', { platform: 'Linux' })
vi.stubGlobal('localStorage', { getItem: () => null })
const { play } = await import('@/conversation/replay/play')

test('chunks get the times of their events, and long pauses are shortened', () => {
  const stream =
    ': comment\n\nid: 4.0\ndata: {"n":1}\n\ndata: {"n":2}\n\nid: 5.1\ndata: {"n":3}\n\nid: 6.0\ndata: {"n":4}\n\ndata: [DONE]\n\n'
  const events = [
    { seq: 3, at: 1_000_000 },
    { seq: 4, at: 1_300_000 },
    { seq: 5, at: 61_300_000 },
    { seq: 6, at: 61_400_000 },
  ]
  expect(timeline(framesOf(stream), events)).toEqual([
    { time: 300, chunk: { n: 1 } },
    { time: 300, chunk: { n: 2 } },
    { time: 2_300, chunk: { n: 3 } },
    { time: 2_400, chunk: { n: 4 } },
  ])
})

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a clock runs faster, waits while it is paused, and releases everyone when it is stopped', async () => {
  const pace = new Pace()
  const passed: number[] = []
  const waiting = [100, 900, 5_000].reduce(
    (before, time) => before.then(() => pace.until(time)).then(() => void passed.push(time)),
    Promise.resolve(),
  )
  await vi.advanceTimersByTimeAsync(100)
  expect(passed).toEqual([100])
  pace.pause(true)
  await vi.advanceTimersByTimeAsync(10_000)
  expect([pace.now, passed]).toEqual([100, [100]])
  pace.speed(4)
  pace.pause(false)
  await vi.advanceTimersByTimeAsync(200)
  expect(passed).toEqual([100, 900])
  pace.stop()
  await waiting
  expect([pace.stopped, passed]).toEqual([true, [100, 900, 5_000]])
})

/** Answer requests for the messages of a conversation. All other requests fail, or wait until they are aborted. Return their addresses. */
function served(statuses: string[], hangs = false): string[] {
  const asked: string[] = []
  const data = statuses.map((status, at) => ({ id: `m${at}`, role: 'assistant', run: `r${at}`, status, parts: [] }))
  vi.stubGlobal('fetch', async (address: string, { signal }: RequestInit) => {
    if (address.includes('/messages?')) return Response.json({ data, next_cursor: null })
    asked.push(address)
    if (hangs) await new Promise((_, fail) => signal?.addEventListener('abort', () => fail(signal.reason)))
    return Response.json({ title: 'Broken' }, { status: 500 })
  })
  return asked
}

test('messages of open runs and messages whose times cannot be loaded are shown without times', async () => {
  const asked = served(['interrupted', 'streaming', 'finished'])
  let last: Played | null = null
  const playing = play('c', new Pace(), (played) => {
    last = played
  })
  await vi.advanceTimersByTimeAsync(5_000)
  await playing
  expect(last).toMatchObject({ messages: [{ id: 'm0' }, { id: 'm1' }, { id: 'm2' }], live: null })
  expect(asked.map((address) => address.replace(/\?.*/, ''))).toEqual([
    '/api/conversations/c/replay',
    '/api/runs/r2/events',
  ])
})

test('stopping a replay aborts its requests', async () => {
  const asked = served(['finished'], true)
  const pace = new Pace()
  const shown: Played[] = []
  const playing = play('c', pace, (played) => shown.push(played))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(asked).toHaveLength(2)
  pace.stop()
  await playing
  expect(shown).toEqual([])
})
