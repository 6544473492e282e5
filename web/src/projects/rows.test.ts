import { expect, test } from 'vitest'
import type { Folder, FolderEntry } from '@/data/files'
import { foldersAbove, moveOf, rowsOf } from '@/projects/rows'

const entry = (path: string, type: FolderEntry['type'] = 'file'): FolderEntry => ({
  name: path.slice(path.lastIndexOf('/') + 1),
  path,
  type,
  ignored: false,
})
const folders = new Map<string, Folder | 'loading' | 'failed'>([
  ['', { path: '', entries: [entry('docs', 'directory'), entry('src', 'directory'), entry('a.py')], rest: 7 }],
  ['src', { path: 'src', entries: [entry('src/b.py')], rest: 0 }],
])
const open = new Set(['src', 'docs'])
const rows = rowsOf(folders, open)

test('rows are the entries of open folders, with the rest of each', () => {
  expect(rows.map(({ key, level }) => [key, level])).toEqual([
    ['docs', 1],
    ['loading docs', 2],
    ['src', 1],
    ['src/b.py', 2],
    ['a.py', 1],
    ['rest ', 1],
  ])
  expect(rows[4]).toMatchObject({ at: 3, of: 10, parent: '' })
  expect(foldersAbove('a/b/c.py')).toEqual(['a', 'a/b'])
})

test('keys move in the tree', () => {
  const closed = new Set<string>()
  expect(moveOf(rows, open, 'docs', 'ArrowDown')).toEqual({ to: 'src' })
  expect(moveOf(rows, open, 'docs', 'ArrowUp')).toBeNull()
  expect(moveOf(rows, open, 'src', 'ArrowRight')).toEqual({ to: 'src/b.py' })
  expect(moveOf(rowsOf(folders, closed), closed, 'src', 'ArrowRight')).toEqual({ open: 'src' })
  expect(moveOf(rows, open, 'src/b.py', 'ArrowLeft')).toEqual({ to: 'src' })
  expect(moveOf(rows, open, 'src', 'ArrowLeft')).toEqual({ close: 'src' })
  expect(moveOf(rows, open, 'docs', 'End')).toEqual({ to: 'rest ' })
  expect(moveOf(rows, open, 'a.py', 's')).toEqual({ to: 'src' })
})
