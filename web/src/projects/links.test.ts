import { expect, test } from 'vitest'
import type { Message, Part } from '@/api/types'
import { callOf, type ToolPart } from '@/conversation/tools/call'
import { changedFiles, fileOf } from '@/projects/links'

const part = (name: string, input: unknown, more: object = {}) =>
  ({
    type: `tool-${name}`,
    toolCallId: name,
    state: 'output-available',
    input,
    output: 'ok',
    ...more,
  }) as unknown as Part

test('the files changed by a run are those that its calls have written', () => {
  const failed = { state: 'output-error', errorText: 'no' }
  const message = {
    parts: [
      { type: 'text', text: 'x' },
      part('write_file', { path: 'a.py', content: '' }),
      part('edit_file', { path: 'a.py', edits: [] }),
      part('edit_file', { path: 'not.py', edits: [] }, failed),
      part('read_file', { path: 'read.py' }),
      part('Edit', { file_path: '/w/b.py', old_string: 'x', new_string: 'y' }),
      part('Read', { file_path: '/w/read.py', offset: 7 }),
      part('apply', { changes: [{ path: 'c.py', kind: 'add' }] }),
      part('other', {}, { toolMetadata: { acp: { kind: 'edit', locations: [{ path: 'd.py', line: 3 }] } } }),
      part('looked', {}, { toolMetadata: { acp: { kind: 'read', locations: [{ path: 'e.py' }] } } }),
    ],
  } as Pick<Message, 'parts'>
  expect(changedFiles(message)).toEqual(['a.py', '/w/b.py', 'c.py', 'd.py'])
})

test('a call names a file and a line', () => {
  const of = (name: string, input: unknown) => fileOf(callOf(part(name, input) as unknown as ToolPart))
  expect(of('read_file', { path: 'a.py', start_line: 12 })).toEqual({ path: 'a.py', line: 12 })
  expect(of('Read', { file_path: '/w/a.py', offset: 7 })).toEqual({ path: '/w/a.py', line: 7 })
  expect(of('read_file', { path: 'blob:12' })).toBeNull()
  expect(of('list_files', { path: 'src' })).toBeNull()
})
