import { expect, test } from 'vitest'
import { layerOf, read, settingsOf } from '@/settings/flat'

test('each setting has its own source or that of its parent', () => {
  const config = { models: { main: 'a', small: '' }, providers: {}, server: { port: 1 } }
  const settings = settingsOf(config, { 'models.main': 'user config.yaml:2', server: 'environment MOOT_SERVER' })
  expect(settings.map(({ key, origin }) => `${key}: ${origin}`)).toEqual([
    'models.main: user config.yaml:2',
    'models.small: default',
    'providers: default',
    'server.port: environment MOOT_SERVER',
  ])
})

test('an edited value keeps the type of the previous one', () => {
  expect([read('20', 5), read('20', '5'), read('x', 5), read('true', false), read('', '')]).toEqual([
    20,
    '20',
    'x',
    true,
    '',
  ])
})

test('a source is split into its layer and its place', () => {
  expect(layerOf('user /home/a b/config.yaml:3')).toEqual(['user', '/home/a b/config.yaml:3'])
  expect(layerOf('default')).toEqual(['default', ''])
})
