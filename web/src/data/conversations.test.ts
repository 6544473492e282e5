import { expect, test } from 'vitest'
import { type LiveRun, statusesOf } from '@/data/conversations'

const run = (id: string, status: string, awaits: string | null, parent_run: string | null = null) =>
  ({ id, conversation: `of ${id}`, status, awaits, parent_run }) as LiveRun

test('a run that waits for its sub-agents is shown as running', () => {
  const found = statusesOf([run('a', 'waiting', 'run'), run('b', 'running', null, 'a')])
  expect([...found]).toEqual([
    ['of a', 'running'],
    ['of b', 'running'],
  ])
})

test('a sub-agent that needs a person marks all conversations above it', () => {
  const found = statusesOf([
    run('a', 'waiting', 'run'),
    run('b', 'waiting', 'run', 'a'),
    run('c', 'waiting', 'person', 'b'),
  ])
  expect([...found.values()]).toEqual(['waiting', 'waiting', 'waiting'])
})
