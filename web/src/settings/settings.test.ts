import { expect, test } from 'vitest'
import { steps } from '@/settings/chart'
import { everyDay, sinceOf } from '@/settings/days'
import { layerOf, read, settingsOf } from '@/settings/flat'

test('each value says what decides it, by its own place or that of what it lies in', () => {
  const config = { models: { main: 'a', small: '' }, providers: {}, server: { port: 1 } }
  const settings = settingsOf(config, { 'models.main': 'user config.yaml:2', server: 'environment MOOT_SERVER' })
  expect(settings.map(({ key, origin }) => `${key}: ${origin}`)).toEqual([
    'models.main: user config.yaml:2',
    'models.small: default',
    'providers: default',
    'server.port: environment MOOT_SERVER',
  ])
})

test('an axis has few round steps and reaches the greatest value', () => {
  for (const greatest of [0.0007, 1, 7, 99, 12_345, 1e9]) {
    const axis = steps(greatest)
    expect(axis.at(-1)).toBeGreaterThanOrEqual(greatest)
    expect(axis.length).toBeLessThan(8)
  }
  expect(steps(0)).toEqual([0, 1])
})

test('every day has its place in a chart, also one on which nothing ran', () => {
  const now = Date.parse('2026-11-22T10:00:00Z')
  expect(everyDay(['2026-11-21'], 3, now)).toEqual(['2026-11-20', '2026-11-21', '2026-11-22'])
  expect(everyDay(['2026-11-21', '2026-11-20'], 0, now)).toEqual(['2026-11-20', '2026-11-21', '2026-11-22'])
  expect(everyDay([], 0, now)).toEqual(['2026-11-22'])
  expect(new Date(sinceOf(3, now)).toISOString()).toBe('2026-11-20T00:00:00.000Z')
})

test('what is typed stays the kind of value that stood there', () => {
  expect([read('20', 5), read('20', '5'), read('x', 5), read('true', false), read('', '')]).toEqual([
    20,
    '20',
    'x',
    true,
    '',
  ])
})

test('a layer is told from the place in it, however the place is named', () => {
  expect(layerOf('user /home/a b/config.yaml:3')).toEqual(['user', '/home/a b/config.yaml:3'])
  expect(layerOf('default')).toEqual(['default', ''])
})
