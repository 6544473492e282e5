import { expect, test } from 'vitest'
import type { Message, Part } from '@/api/types'
import { blocksOf } from '@/conversation/messages/parts'

const blocks = (...parts: unknown[]) => blocksOf({ id: 'm', role: 'assistant', parts: parts as Part[] } as Message)

test('a plan includes the status of each entry', () => {
  const entries = [
    { content: 'look', status: 'completed' },
    { content: 'fix', status: 'pending' },
  ]
  expect(blocks({ type: 'data-plan', id: 'plan', data: { entries } })).toEqual([{ kind: 'plan', key: '0', entries }])
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

test('unknown or malformed data parts are ignored', () => {
  expect(blocks({ type: 'data-other', data: 5 }, { type: 'data-plan', data: { entries: 'x' } })).toEqual([
    { kind: 'plan', key: '1', entries: [] },
  ])
})
