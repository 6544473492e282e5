import { useQueries } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { ChevronRight, File as FileIcon, Folder as FolderIcon, FolderOpen, Link2 } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import { type Folder, folderQuery } from '@/data/files'
import { foldersAbove, type ItemRow, isItem, moveOf, type Row, rowsOf } from '@/projects/rows'
import { text } from '@/text'
import { Failed, Loading } from '@/ui/States'

interface Props {
  project: string
  /** The path of the open file. */
  shown: string
  choose: (path: string) => void
}

/** The file tree of a project. Folders are loaded when they are opened. The arrow keys move in it; Enter opens a file or folder. */
export function Tree({ project, shown, choose }: Props) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(foldersAbove(shown)))
  const [whole, setWhole] = useState<ReadonlySet<string>>(new Set())
  const [active, setActive] = useState(shown)
  const box = useRef<HTMLDivElement>(null)
  const asked = useMemo(
    () => [
      ...['', ...open].map((path) => ({ path, most: false })),
      ...[...whole].map((path) => ({ path, most: true })),
    ],
    [open, whole],
  )
  const found = useQueries({ queries: asked.map(({ path, most }) => folderQuery(project, path, most)) })
  const folders = new Map<string, Folder | 'loading' | 'failed'>()
  asked.forEach(({ path, most }, at) => {
    const known = found[at]?.data ?? (found[at]?.isError ? 'failed' : 'loading')
    if (!most || typeof known !== 'string') folders.set(path, known) // the first entries stay until all are there
  })
  const rows = rowsOf(folders, open)

  useEffect(() => {
    if (!shown) return
    setOpen((before) => {
      const above = foldersAbove(shown)
      return above.every((path) => before.has(path)) ? before : new Set([...before, ...above])
    })
    setActive(shown)
  }, [shown])

  const toggle = (path: string, opened: boolean) =>
    setOpen((before) => {
      const next = new Set(before)
      if (opened) next.add(path)
      else next.delete(path)
      return next
    })

  const entries = rows.filter(isItem)
  function focus(key: string) {
    setActive(key)
    box.current?.querySelector<HTMLElement>(`[data-path="${CSS.escape(key)}"]`)?.focus()
  }

  function act(row: ItemRow) {
    setActive(row.key)
    if (row.kind === 'rest') {
      const above = entries[entries.indexOf(row) - 1]
      if (above) focus(above.key) // this line disappears
      return setWhole(new Set([...whole, row.parent]))
    }
    const { entry } = row
    if (entry.type === 'directory') toggle(entry.path, !open.has(entry.path))
    else choose(entry.path)
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const from = (event.target as HTMLElement).dataset.path ?? ''
    const row = entries.find((row) => row.key === from)
    if (row && (event.key === 'Enter' || event.key === ' ')) act(row)
    else {
      const move = moveOf(rows, open, from, event.key)
      if (!move) return
      if ('open' in move) toggle(move.open, true)
      else if ('close' in move) toggle(move.close, false)
      else focus(move.to)
    }
    event.preventDefault()
    event.stopPropagation() // letters move in the tree and are not shortcuts here
  }

  if (found[0]?.error) return <Failed error={found[0].error} retry={() => void found[0]?.refetch()} className="m-3" />
  if (!found[0]?.data) return <Loading rows={6} className="m-3" />
  if (!rows.length) return <p className="px-4 py-6 text-sm text-muted">{text.files.emptyFolder}</p>
  const tabbable = entries.some((row) => row.key === active) ? active : entries[0]?.key
  return (
    <div ref={box} role="tree" aria-label={text.files.tree} onKeyDown={onKeyDown} className="px-2 pb-3">
      <Rows rows={rows}>
        {(row) =>
          isItem(row) ? (
            <Item
              key={row.key}
              row={row}
              open={open.has(row.key)}
              shown={row.key === shown}
              tabbable={row.key === tabbable}
              act={() => act(row)}
            />
          ) : (
            <p
              key={row.key}
              style={{ paddingLeft: `${row.level + 1}rem` }}
              className={clsx('py-1 text-xs', row.kind === 'failed' ? 'text-danger' : 'text-faint')}
            >
              {row.kind === 'failed' ? text.files.failed : text.common.loading}
            </p>
          )
        }
      </Rows>
    </div>
  )
}

/** About as many rows as a screen shows. */
const SCREEN = 60

/** The rows. The ones that a screen shows are painted before the others are rendered. */
function Rows({ rows, children }: { rows: readonly Row[]; children: (row: Row) => ReactNode }) {
  const most = useDeferredValue(Number.POSITIVE_INFINITY, SCREEN)
  return rows.slice(0, most).map(children)
}

interface ItemProps {
  row: ItemRow
  open: boolean
  shown: boolean
  tabbable: boolean
  act: () => void
}

function Item({ row, open, shown, tabbable, act }: ItemProps) {
  if (row.kind === 'rest')
    return (
      // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys
      <div
        role="treeitem"
        aria-level={row.level}
        aria-selected={false}
        tabIndex={tabbable ? 0 : -1}
        data-path={row.key}
        onClick={act}
        style={{ paddingLeft: `${row.level + 1}rem` }}
        className="flex min-h-7 cursor-pointer items-center rounded-lg text-xs text-muted hover:bg-hover focus-visible:outline-offset-[-2px] max-md:min-h-11"
      >
        {text.files.rest(row.count)}
      </div>
    )
  const { entry, level, at, of } = row
  const isFolder = entry.type === 'directory'
  const Icon = isFolder ? (open ? FolderOpen : FolderIcon) : entry.type === 'link' ? Link2 : FileIcon
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys
    <div
      role="treeitem"
      aria-level={level}
      aria-posinset={at}
      aria-setsize={of}
      aria-expanded={isFolder ? open : undefined}
      aria-selected={shown}
      tabIndex={tabbable ? 0 : -1}
      data-path={entry.path}
      onClick={act}
      style={{ paddingLeft: `${level - 0.75}rem` }}
      className={clsx(
        'flex min-h-7 cursor-pointer items-center gap-1.5 rounded-lg pr-2 text-sm hover:bg-hover focus-visible:outline-offset-[-2px] max-md:min-h-11',
        shown && 'bg-accent-soft',
        entry.ignored && 'text-faint',
      )}
    >
      <ChevronRight
        size={14}
        aria-hidden
        className={clsx('shrink-0 text-faint transition-transform', open && 'rotate-90', !isFolder && 'invisible')}
      />
      <Icon size={15} aria-hidden className={clsx('shrink-0', isFolder ? 'text-accent' : 'text-faint')} />
      <span className="min-w-0 truncate">{entry.name}</span>
      {entry.ignored && <span className="sr-only">{text.files.ignored}</span>}
    </div>
  )
}
