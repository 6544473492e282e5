import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { english } from '@/text'
import { chinese } from '@/text.zh'

type Value = string | ((...values: never[]) => string) | { readonly [key: string]: Value } | readonly string[]

const CHANGE = { event: 'created', fields: ['title'], before: 'open', status: 'done', author: 'mara' }
const SAMPLES: readonly unknown[] = [2, 'README', ['README', 'LICENSE'], CHANGE]

/** Texts without words of their own: names, symbols and punctuation. */
const SAME =
  /^(approval\.question|about\.doctorAfter|common\.(app|count|shown|labeled|list)|keys\.names\..*|language\.names\.en|files\.(group|letters\..*|renamed)|mcp\.(command|loginCommand|protocols\..*)|models\.emptyAfter|plugins\.command|progress\.lasting|questions\.document|searchEngine\.providers\.(brave|tavily|searxng)|skills\.places\.home|usage\.spentOf)$/

/** Return each text with its path. Texts with values get samples. */
function textsOf(value: Value, path = ''): [path: string, text: string][] {
  if (typeof value === 'string') return [[path, value]]
  if (typeof value === 'function') return [[path, called(value)]]
  return Object.entries(value).flatMap(([key, inner]) => textsOf(inner, path ? `${path}.${key}` : key))
}

/** Call a function of a catalogue with the first samples of the types that it expects. */
function called(make: (...values: never[]) => string): string {
  const choices = SAMPLES.reduce<unknown[][]>(
    (all) => all.flatMap((values) => (values.length < make.length ? SAMPLES.map((one) => [...values, one]) : [values])),
    [[]],
  )
  for (const values of choices) {
    try {
      return make(...(values as never[]))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error // a sample of another type
    }
  }
  throw new Error(`No sample fits ${make}`)
}

const texts = textsOf(chinese)
const empty = new Set(textsOf(english).flatMap(([path, text]) => (text ? [] : [path])))

describe('the Chinese catalogue', () => {
  test('has the same texts as the English one', () => {
    expect(texts.map(([path]) => path)).toEqual(textsOf(english).map(([path]) => path))
  })

  test('has a Chinese text for each English one', () => {
    expect(
      texts.filter(([path, text]) => !SAME.test(path) && !empty.has(path) && !/\p{Script=Han}/u.test(text)),
    ).toEqual([])
  })

  test('has Chinese punctuation, and spaces between Chinese and Latin letters', () => {
    const joined = /\p{Script=Han}[A-Za-z0-9#$]|[A-Za-z0-9%]\p{Script=Han}/u
    const narrow = /\p{Script=Han}[,;:!?.]|[,;!?]\p{Script=Han}|\.{3}/u
    expect(texts.filter(([, text]) => joined.test(text) || narrow.test(text))).toEqual([])
  })

  test('names and counts what the server names in English', () => {
    expect(['branches', 'tool calls', 'sub-agents'].map((things) => chinese.common.count(1234, things))).toEqual([
      '1,234 个分支',
      '1,234 次工具调用',
      '1,234 个子智能体',
    ])
    expect(chinese.common.count(2, 'unheard-of things')).toBe('2 unheard-of things')
    expect(chinese.export.keeps(['messages', 'pictures'])).toBe('保留：消息、图片')
  })
})

/** Run `boot.js` in a browser with these languages and return the language of the page. */
function languageOf(languages: readonly string[], stored?: string): string {
  const document = { documentElement: { lang: 'en' } }
  const localStorage = { getItem: () => stored ?? null }
  runInNewContext(readFileSync('public/boot.js', 'utf8'), {
    document,
    navigator: { languages },
    ...(stored !== 'blocked' && { localStorage }),
    addEventListener: () => {},
  })
  return document.documentElement.lang
}

test('the page has the first language of the browser that it knows', () => {
  const browsers = [
    ['zh-CN', 'en'],
    ['zh'],
    ['zh-Hant-TW'],
    ['de', 'zh-CN', 'en'],
    ['en-GB', 'zh-CN'],
    ['de'],
    ['zhx'],
    [],
  ]
  expect(browsers.map((languages) => languageOf(languages))).toEqual([
    ...['zh-Hans', 'zh-Hans', 'zh-Hans', 'zh-Hans'],
    ...['en', 'en', 'en', 'en'],
  ])
})

test('the stored choice comes before the languages of the browser', () => {
  expect([languageOf(['zh-CN'], 'en'), languageOf(['en'], 'zh-Hans'), languageOf(['zh-CN'], 'blocked')]).toEqual([
    ...['en', 'zh-Hans', 'zh-Hans'],
  ])
})
