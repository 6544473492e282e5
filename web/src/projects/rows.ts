import type { Folder, FolderEntry } from '@/data/files'

/** A visible row of the file tree. */
export type Row =
  | { kind: 'entry'; key: string; entry: FolderEntry; level: number; at: number; of: number; parent: string }
  | { kind: 'loading' | 'failed'; key: string; level: number }
  | { kind: 'rest'; key: string; level: number; count: number; parent: string }

/** A row that keys move to: an entry, or the line for the rest of a folder. */
export type ItemRow = Extract<Row, { kind: 'entry' | 'rest' }>

export function isItem(row: Row): row is ItemRow {
  return row.kind === 'entry' || row.kind === 'rest'
}

/** Return the visible rows: the entries of open folders, each below its folder. A folder without entries is loading or has failed. */
export function rowsOf(
  folders: ReadonlyMap<string, Folder | 'loading' | 'failed'>,
  open: ReadonlySet<string>,
  path = '',
  level = 1,
): Row[] {
  const folder = folders.get(path) ?? 'loading'
  if (typeof folder === 'string') return [{ kind: folder, key: `${folder} ${path}`, level }]
  const { entries, rest } = folder
  const rows = entries.flatMap((entry, index): Row[] => {
    const own: Row = {
      kind: 'entry',
      key: entry.path,
      entry,
      level,
      at: index + 1,
      of: entries.length + rest,
      parent: path,
    }
    const inside = entry.type === 'directory' && open.has(entry.path)
    return inside ? [own, ...rowsOf(folders, open, entry.path, level + 1)] : [own]
  })
  return rest ? [...rows, { kind: 'rest', key: `rest ${path}`, level, count: rest, parent: path }] : rows
}

/** Return the folders above a path, topmost first. */
export function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1)
  return names.map((_, at) => names.slice(0, at + 1).join('/'))
}

/** Where a key moves to from a row of a tree: to another row, or by opening or closing a folder. */
export type Move = { to: string } | { open: string } | { close: string } | null

/** Return what a key does, as in the tree pattern of ARIA. `open` has the open folders. */
export function moveOf(rows: readonly Row[], open: ReadonlySet<string>, from: string, key: string): Move {
  const entries = rows.filter(isItem)
  const at = entries.findIndex((row) => row.key === from)
  const row = entries[at]
  if (!row) return null
  const to = (found: ItemRow | undefined) => (found ? { to: found.key } : null)
  const isFolder = row.kind === 'entry' && row.entry.type === 'directory'
  const isOpen = isFolder && open.has(row.key)
  if (key === 'ArrowDown') return to(entries[at + 1])
  if (key === 'ArrowUp') return to(entries[at - 1])
  if (key === 'Home') return to(entries[0])
  if (key === 'End') return to(entries.at(-1))
  if (key === 'ArrowRight') {
    if (isFolder && !isOpen) return { open: row.key }
    return isOpen && entries[at + 1]?.parent === row.key ? to(entries[at + 1]) : null
  }
  if (key === 'ArrowLeft') return isOpen ? { close: row.key } : to(entries.find(({ key }) => key === row.parent))
  if (key.length === 1 && key !== ' ') {
    const starts = (row: ItemRow) => row.kind === 'entry' && row.entry.name.toLowerCase().startsWith(key.toLowerCase())
    return to([...entries.slice(at + 1), ...entries.slice(0, at)].find(starts))
  }
  return null
}
