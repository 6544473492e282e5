import { expect, test } from 'vitest'
import { hasEntries, isList, layerOf, read, settingsOf } from '@/settings/flat'

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

test('a list is edited line by line only if each item is one line of its own', () => {
  expect([isList(['a', 'b c']), isList([])]).toEqual([true, true])
  expect([isList(['a\n  b']), isList([' a']), isList(['']), isList(['u:•••@h']), isList([1])]).toEqual(
    Array(5).fill(false),
  )
  expect([hasEntries('permissions.rules'), hasEntries('hooks.Stop'), hasEntries('sandbox.writable')]).toEqual([
    true,
    true,
    false,
  ])
})

test('a value that is not set can be set and unset', () => {
  expect([read('30', null), read('5m', null), read(' ', null)]).toEqual([30, '5m', null])
})
