import { expect, test } from 'vitest'
import type { Message, Part } from '@/api/types'
import {
  askedInside,
  blocksOf,
  type CallBlock,
  type FilePart,
  nameOf,
  ownFiles,
  typedText,
  withCitations,
} from '@/conversation/messages/parts'

const blocks = (...parts: unknown[]) => blocksOf({ id: 'm', role: 'assistant', parts: parts as Part[] } as Message)

test('a plan includes the status of each entry', () => {
  const entries = [
    { content: 'look', status: 'completed' },
    { content: 'fix', status: 'pending' },
  ]
  expect(blocks({ type: 'data-plan', id: 'plan', data: { entries } })).toEqual([{ kind: 'plan', key: '0', entries }])
})

test('findings of a review have a file and a line, and others are left out', () => {
  const findings = [{ path: 'src/a.py', line: 3, text: 'Leaks.' }]
  const data = { findings: [...findings, { path: 'b.py' }, null, 'x'] }
  expect(blocks({ type: 'data-findings', id: 'findings', data })).toEqual([{ kind: 'findings', key: '0', findings }])
  expect(blocks({ type: 'data-findings', data: { findings: 1 } })).toEqual([
    { kind: 'findings', key: '0', findings: [] },
  ])
})

test('subagent output is shown with its name, and empty output is not shown', () => {
  const data = { parent: 'a', agent: 'explorer', kind: 'text', text: 'It is there.' }
  const [block, ...others] = blocks(
    { type: 'data-subagent', data },
    { type: 'data-subagent', data: { ...data, text: '' } },
  )
  expect(block).toMatchObject({ kind: 'subagent', agent: 'explorer', text: 'It is there.', thought: false })
  expect(others).toEqual([])
})

test('the parts of a subagent are inside the call that started it', () => {
  const call = (toolCallId: string, parentToolCallId?: string, more = {}) => ({
    type: 'dynamic-tool',
    toolName: 'shell',
    toolCallId,
    state: 'output-available',
    input: {},
    output: '',
    ...(parentToolCallId && { toolMetadata: { moot: { parentToolCallId } } }),
    ...more,
  })
  const waiting = { state: 'approval-requested', approval: { id: 'ask' }, output: undefined }
  const shown = blocks(
    call('a'),
    call('b', 'a'),
    { type: 'data-subagent', data: { parentToolCallId: 'a', agent: 'explorer', kind: 'text', text: 'Looking.' } },
    call('c', 'b', waiting),
    call('d', 'missing'),
  )
  expect(shown.map((block) => block.key)).toEqual(['a', 'd'])
  const outer = shown[0] as CallBlock
  expect(outer.inner.map((block) => [block.kind, block.key])).toEqual([
    ['call', 'b'],
    ['subagent', '2'],
  ])
  expect((outer.inner[0] as CallBlock).inner.map((block) => block.key)).toEqual(['c'])
  expect(askedInside(outer).map((one) => one.approvalId)).toEqual(['ask'])
})

test('unknown or malformed data parts are ignored', () => {
  expect(blocks({ type: 'data-other', data: 5 }, { type: 'data-plan', data: { entries: 'x' } })).toEqual([
    { kind: 'plan', key: '1', entries: [] },
  ])
})

test('a call made by a hook or by a line of a command has its name', () => {
  const call = (toolCallId: string, toolMetadata?: object) => ({
    type: 'tool-shell',
    toolCallId,
    state: 'output-available',
    input: {},
    output: '',
    ...(toolMetadata && { toolMetadata }),
  })
  const line = { moot: { hook: 'before_run', command: 'explain' } }
  const shown = blocks(call('a', { moot: { hook: 'before_run' } }), call('b'), call('c', line)) as CallBlock[]
  expect(shown.map((block) => [block.call.hook, block.call.command])).toEqual([
    ['before_run', ''],
    ['', ''],
    ['before_run', 'explain'],
  ])
})

test('the files to which a prompt refers are not part of what the user typed', () => {
  const moot = (facts: Record<string, unknown>) => ({ providerMetadata: { moot: facts } })
  const upload = { type: 'file', url: 'blob:a', mediaType: 'text/plain', filename: 'up.txt' }
  const parts = [
    upload,
    { ...upload, filename: 'a.py', ...moot({ path: 'a.py', lines: [2, 3], referenced: true }) },
    { type: 'text', text: 'Be kind. See @a.py#2-3', ...moot({ typed: '@{tone} See @a.py#2-3' }) },
  ] as Part[]
  expect(ownFiles(parts)).toEqual([upload])
  expect(typedText(parts)).toBe('@{tone} See @a.py#2-3')
  expect(parts.slice(0, 2).map((part) => nameOf(part as FilePart))).toEqual(['up.txt', 'a.py (lines 2 to 3)'])
})

test('sources are below the answer, each once, and numbers in the text link to them', () => {
  const source = (url: string, title?: string) => ({ type: 'source-url', sourceId: url, url, title })
  const [one, other] = ['https://a.example/1', 'https://b.example/2']
  const shown = blocks(
    { type: 'text', text: 'Yes [1][2].', state: 'done' },
    source(one),
    source(other, 'B'),
    source(one, 'A'),
    { type: 'text', text: 'And [9].', state: 'done' },
  )
  expect(shown.map((block) => block.kind)).toEqual(['text', 'text', 'sources'])
  expect(shown.at(-1)).toMatchObject({
    sources: [
      { url: one, title: 'A' },
      { url: other, title: 'B' },
    ],
  })
  expect(shown[0]).toMatchObject({ text: `Yes [&#91;1&#93;](<${one}>)[&#91;2&#93;](<${other}>).` })
  expect(shown[1]).toMatchObject({ text: 'And [9].' })
})

test('code, links and indexes are not citations', () => {
  const sources = [{ url: 'https://a.example', title: '' }]
  for (const text of [
    '`a [1]`',
    '```\nx [1]\n```',
    '[1](https://b.example)',
    'a[1]',
    '[one][1]',
    '[1]: https://b.example',
    '![1]',
  ])
    expect(withCitations(text, sources)).toBe(text)
})
