import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { isOnline, noteReached, subscribe } from '@/api/online'

/** A fake of the browser's network status and its events. */
const browser = { onLine: true, events: new EventTarget() }
let reported: boolean[] = []
let end = () => {}

function setOnline(onLine: boolean): void {
  browser.onLine = onLine
  browser.events.dispatchEvent(new Event(onLine ? 'online' : 'offline'))
}

beforeEach(() => {
  browser.onLine = true
  vi.stubGlobal('navigator', browser)
  vi.stubGlobal('addEventListener', browser.events.addEventListener.bind(browser.events))
  vi.stubGlobal('removeEventListener', browser.events.removeEventListener.bind(browser.events))
  noteReached(true)
  reported = []
  end = subscribe(() => reported.push(isOnline()))
})

afterEach(() => {
  end()
  vi.unstubAllGlobals()
})

test('the browser going online again counts, even after a response that was in flight when it went offline', () => {
  setOnline(false)
  expect(reported.at(-1)).toBe(false)
  noteReached(true)
  expect(reported.at(-1)).toBe(false)
  setOnline(true)
  expect(reported.at(-1)).toBe(true)
})

test('two failed requests in a row mean offline, and a response means online', () => {
  noteReached(false)
  expect(reported).toEqual([])
  noteReached(false)
  expect(reported.at(-1)).toBe(false)
  noteReached(true)
  expect(reported.at(-1)).toBe(true)
})

test('listeners are not called after they unsubscribe', () => {
  end()
  setOnline(false)
  expect(reported).toEqual([])
})
