import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { isOnline, noteReached, subscribe } from '@/api/online'

/** A fake of the browser's network status and its events. */
const browser = { onLine: true, events: new EventTarget() }
let told: boolean[] = []
let end = () => {}

function says(onLine: boolean): void {
  browser.onLine = onLine
  browser.events.dispatchEvent(new Event(onLine ? 'online' : 'offline'))
}

beforeEach(() => {
  browser.onLine = true
  vi.stubGlobal('navigator', browser)
  vi.stubGlobal('addEventListener', browser.events.addEventListener.bind(browser.events))
  vi.stubGlobal('removeEventListener', browser.events.removeEventListener.bind(browser.events))
  noteReached(true)
  told = []
  end = subscribe(() => told.push(isOnline()))
})

afterEach(() => {
  end()
  vi.unstubAllGlobals()
})

test('the browser is believed when it comes back, also behind an answer that was under way when it went', () => {
  says(false)
  expect(told.at(-1)).toBe(false)
  noteReached(true)
  expect(told.at(-1)).toBe(false)
  says(true)
  expect(told.at(-1)).toBe(true)
})

test('one request that does not get through says nothing, a second does, and an answer takes it back', () => {
  noteReached(false)
  expect(told).toEqual([])
  noteReached(false)
  expect(told.at(-1)).toBe(false)
  noteReached(true)
  expect(told.at(-1)).toBe(true)
})

test('whoever has gone is told nothing', () => {
  end()
  says(false)
  expect(told).toEqual([])
})
