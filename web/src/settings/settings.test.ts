import { expect, test } from 'vitest'
import { steps } from '@/settings/chart'
import { settingsOf } from '@/settings/flat'

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
