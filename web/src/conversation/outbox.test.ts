import { beforeEach, expect, test, vi } from 'vitest'

const stored = new Map<string, string>()
const storage = new Proxy({} as Storage, {
  ownKeys: () => [...stored.keys()],
  getOwnPropertyDescriptor: (_, key) => ({ enumerable: true, configurable: true, value: stored.get(String(key)) }),
  get: (_, name) =>
    ({
      getItem: (key: string) => stored.get(key) ?? null,
      setItem: (key: string, value: string) => {
        if (value.includes('too much')) throw new DOMException('full', 'QuotaExceededError')
        stored.set(key, value)
      },
      removeItem: (key: string) => stored.delete(key),
    })[String(name)],
})

/** Return the outbox of a user in a newly opened tab. */
async function opened(user: string) {
  vi.resetModules()
  vi.stubGlobal('localStorage', storage)
  const { outbox } = await import('@/conversation/outbox')
  if (user) outbox.own(user)
  return outbox
}

const prompt = (id: string, text = 'hi', at = 1) => ({
  id,
  conversation: 'a/b c',
  parts: [{ type: 'text' as const, text }],
  extra: {},
  at,
})

beforeEach(() => stored.clear())

test('prompts survive a reload, oldest first, until they are removed', async () => {
  const before = await opened('ada')
  before.put(prompt('2', 'later', 2))
  before.put(prompt('1'))
  const after = await opened('ada')
  expect(after.of('a/b c').map(({ id }) => id)).toEqual(['1', '2'])
  expect(after.of('other')).toEqual([])
  after.remove('1')
  expect((await opened('ada')).get()).toEqual([prompt('2', 'later', 2)])
})

test('a prompt of another user of the browser is not shown', async () => {
  ;(await opened('ada')).put(prompt('1'))
  expect((await opened('bob')).get()).toEqual([])
})

test('a prompt written before the user is known is assigned to the user', async () => {
  const early = await opened('')
  early.put(prompt('1'))
  early.own('ada')
  expect(early.get()).toEqual([prompt('1')])
  expect((await opened('ada')).get()).toEqual([prompt('1')])
  expect(stored.size).toBe(1)
})

test('a prompt too large for the storage is kept in the tab and reported', async () => {
  const outbox = await opened('ada')
  expect(outbox.put(prompt('1', 'too much'))).toBe(false)
  expect(outbox.get()).toHaveLength(1)
})

test('a damaged entry is ignored', async () => {
  ;(await opened('ada')).put(prompt('1'))
  stored.set('moot.outbox.ada/x/y', '{')
  expect((await opened('ada')).get()).toHaveLength(1)
})
