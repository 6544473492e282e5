import { expect, test, vi } from 'vitest'

vi.stubGlobal('navigator', { platform: 'Linux' })
vi.stubGlobal('HTMLElement', class {})
vi.stubGlobal('document', { querySelector: () => null })
vi.stubGlobal('localStorage', { getItem: () => null })
const { matches, written } = await import('@/keys/shortcuts')

const press = (key: string, more: Partial<KeyboardEvent> = {}) =>
  ({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, target: null, ...more }) as KeyboardEvent

test('a shortcut matches only with exactly its modifiers', () => {
  expect(matches('Mod+K', press('k', { ctrlKey: true }))).toBe(true)
  expect(matches('Mod+K', press('k'))).toBe(false)
  expect(matches('Mod+K', press('k', { ctrlKey: true, altKey: true }))).toBe(false)
  expect(matches('?', press('?', { shiftKey: true }))).toBe(true)
  expect(matches('Alt+ArrowDown', press('ArrowDown', { altKey: true }))).toBe(true)
  expect(matches('N', press('n', { ctrlKey: true }))).toBe(false)
})

test('keys are formatted as on the keyboard', () => {
  expect([written('Mod+K'), written('Alt+ArrowDown'), written('n')]).toEqual(['Ctrl+K', 'Alt+↓', 'N'])
})
