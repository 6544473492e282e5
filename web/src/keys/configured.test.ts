import { expect, test, vi } from 'vitest'

vi.stubGlobal('navigator', { platform: 'Linux' })
vi.stubGlobal('HTMLElement', class {})
vi.stubGlobal('document', { querySelector: () => null })
vi.stubGlobal('localStorage', { getItem: () => null })
const { isOneOf, pageKeys } = await import('@/keys/configured')

const press = (key: string, more: Partial<KeyboardEvent> = {}) =>
  ({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, target: null, ...more }) as KeyboardEvent

test('keys of the configuration are named as the browser names them', () => {
  expect(['ctrl+g', 'alt+enter', 'shift+tab', 'f2', 'esc', 'pageup', 'alt+up'].map(pageKeys)).toEqual([
    'Mod+G',
    'Alt+Enter',
    'Shift+Tab',
    'F2',
    'Escape',
    'PageUp',
    'Alt+ArrowUp',
  ])
  expect(pageKeys('ctrl+x n')).toBe(null)
})

test('keys match while typing, with exactly their modifiers', () => {
  expect(isOneOf(['Enter'], press('Enter'))).toBe(true)
  expect(isOneOf(['Enter'], press('Enter', { shiftKey: true }))).toBe(false)
  expect(isOneOf(['Alt+Enter'], press('Enter'))).toBe(false)
  expect(isOneOf(['Alt+Enter', 'F2'], press('F2'))).toBe(true)
})
