import { expect, test } from 'vitest'
import type { Message, Part } from '@/api/types'
import { blocksOf } from '@/conversation/messages/parts'

const drawn = (...parts: unknown[]) => blocksOf({ id: 'm', role: 'assistant', parts: parts as Part[] } as Message)

test('a plan is drawn with how far each entry is', () => {
  const entries = [
    { content: 'look', status: 'completed' },
    { content: 'mend', status: 'pending' },
  ]
  expect(drawn({ type: 'data-plan', id: 'plan', data: { entries } })).toEqual([{ kind: 'plan', key: '0', entries }])
})

test('words of an agent’s own agent are drawn with its name, and nothing where there are none', () => {
  const data = { parent: 'a', agent: 'explorer', kind: 'text', text: 'It is there.' }
  const [block, ...others] = drawn(
    { type: 'data-subagent', data },
    { type: 'data-subagent', data: { ...data, text: '' } },
  )
  expect(block).toMatchObject({ kind: 'subagent', agent: 'explorer', text: 'It is there.', thought: false })
  expect(others).toEqual([])
})

test('data of an unknown kind or of a wrong shape breaks nothing', () => {
  expect(drawn({ type: 'data-other', data: 5 }, { type: 'data-plan', data: { entries: 'x' } })).toEqual([
    { kind: 'plan', key: '1', entries: [] },
  ])
})
