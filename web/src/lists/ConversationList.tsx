import { useVirtualizer } from '@tanstack/react-virtual'
import { clsx } from 'clsx'
import { type DragEvent, type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import type { Conversation } from '@/api/types'
import { useChildren, useRoot } from '@/data/children'
import { type Filter, useConversationActions, useConversations, useListChoices, useLive } from '@/data/conversations'
import { useProjects } from '@/data/projects'
import { Calls, ChildEntry, Fold } from '@/lists/ChildEntry'
import { DropTargets, drag } from '@/lists/DropTargets'
import { Entry } from '@/lists/Entry'
import { countOf } from '@/lists/filter'
import { type Row, rowsOf, withCalls, withChildren } from '@/lists/rows'
import { SelectableEntry, SelectionBar, useSelection } from '@/lists/Selection'
import { keepOrder, type Named } from '@/lists/walking'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { isInDialog } from '@/ui/Dialog'
import { Failed, Loading } from '@/ui/States'

const HEIGHTS = { day: 34, project: 38, one: 54, fold: 44, child: 46, calls: 54, more: 46 }

/** The list of active, archived or deleted conversations. It is virtualized and loads more pages on scroll. */
export function ConversationList({ filter }: { filter: Filter }) {
  const grouped = filter.shelf === 'active' && !countOf(filter)
  const query = useConversations(filter, { called: grouped ? false : undefined })
  const [callsOpen, setCallsOpen] = useState(false)
  const calls = useConversations(filter, { called: true, enabled: grouped && callsOpen })
  const { data: choices } = useListChoices()
  const live = useLive()
  const actions = useConversationActions()
  const selection = useSelection()
  const selecting = selection.ids.size > 0
  const [dragged, setDragged] = useState<readonly Conversation[]>([])
  const [location] = useLocation()
  const scroller = useRef<HTMLDivElement>(null)
  const conversations = useMemo(() => query.data?.pages.flatMap((page) => page.data) ?? [], [query.data])
  const projects = useProjects()
  const called = useMemo(() => calls.data?.pages.flatMap((page) => page.data) ?? [], [calls.data])
  const plain = useMemo(() => {
    const rows = rowsOf(conversations, new Map(projects.map((project) => [project.id, project.name])))
    return grouped && choices
      ? withCalls(rows, choices, callsOpen ? called : null, callsOpen && calls.hasNextPage)
      : rows
  }, [conversations, projects, grouped, choices, callsOpen, called, calls.hasNextPage])
  const shown = decodeURIComponent(/^\/c\/([^/]+)/.exec(location)?.[1] ?? '')
  const listed = [...conversations, ...called].find(({ id, client_id }) => id === shown || client_id === shown)
  const above = useRoot(listed || query.isPending ? '' : shown)
  const root = listed?.id ?? above
  const below = useChildren(root, live.has(root))
  const [unfolded, setUnfolded] = useState<{ root: string; open: boolean } | null>(null)
  const open = unfolded?.root === root ? unfolded.open : !listed
  const rows = useMemo(() => withChildren(plain, root, below, open), [plain, root, below, open])
  useEffect(() => keepOrder(rows.flatMap(named)), [rows])

  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => HEIGHTS[rows[index]?.kind ?? 'one'],
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 8,
  })
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= rows.length - 10) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, last, rows.length])

  function walk(event: KeyboardEvent) {
    if (isInDialog(event)) return
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Escape' && selecting) {
      event.preventDefault() // keeps the drawer of a phone open
      selection.set([])
      return
    }
    const from = (event.target as HTMLElement).closest('[data-index]')
    if (!by || !from || event.altKey) return
    event.preventDefault()
    let to = Number(from.getAttribute('data-index')) + by
    if (rows[to]?.kind === 'day' || rows[to]?.kind === 'project') to += by
    if (!rows[to]) return
    virtual.scrollToIndex(to)
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-index="${to}"] :is(a, button, input)`)?.focus(),
    )
  }

  if (query.isError && !query.data)
    return <Failed error={query.error} retry={() => void query.refetch()} className="m-3" />
  if (query.isPending) return <Loading rows={6} className="m-3" />
  if (!rows.length) {
    const words = countOf(filter) ? text.list.noMatches : text.list.empty[filter.shelf]
    return <p className="px-5 py-8 text-center text-sm text-muted">{words}</p>
  }
  function selectFirst(id: string) {
    selection.set([id])
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`input[data-id="${CSS.escape(id)}"]`)?.focus(),
    )
  }

  function dragFrom(event: DragEvent) {
    const id = (event.target as HTMLElement).closest('[data-conversation]')?.getAttribute('data-conversation') ?? ''
    const all = [...conversations, ...called]
    const chosen = selection.ids.has(id)
      ? all.filter((one) => selection.ids.has(one.id))
      : all.filter((one) => one.id === id)
    if (!chosen.length) return
    drag(event, chosen)
    event.target.addEventListener('dragend', () => setDragged([]), { once: true }) // reaches no parent if the list removes the row meanwhile
    if (projects.length > 1 && filter.shelf !== 'deleted') setTimeout(() => setDragged(chosen)) // browsers cancel a drag that changes the page at once
  }

  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys move between links, which are also reachable by Tab */}
      <div
        ref={scroller}
        onKeyDown={walk}
        onDragStart={dragFrom}
        className="min-h-0 grow overflow-y-auto overscroll-contain px-2 pb-2"
      >
        <ul style={{ height: virtual.getTotalSize() }} className="relative">
          {items.map((item) => {
            const row = rows[item.index]
            return (
              row && (
                <li
                  key={item.key}
                  data-index={item.index}
                  data-conversation={row.kind === 'one' ? row.conversation.id : undefined}
                  style={{ transform: `translateY(${item.start}px)`, height: item.size }}
                  className="absolute inset-x-0 top-0"
                >
                  {row.kind === 'one' && selecting ? (
                    <SelectableEntry conversation={row.conversation} selection={selection} />
                  ) : row.kind === 'one' ? (
                    <Entry
                      conversation={row.conversation}
                      status={live.get(row.conversation.id)}
                      shown={
                        location === `/c/${row.conversation.id}` || location === `/c/${row.conversation.client_id}`
                      }
                      inside={row.inside}
                      actions={actions}
                      select={() => selectFirst(row.conversation.id)}
                    />
                  ) : row.kind === 'calls' ? (
                    <Calls
                      count={row.count}
                      latest={row.latest}
                      open={row.open}
                      toggle={() => setCallsOpen(!row.open)}
                    />
                  ) : row.kind === 'more' ? (
                    <button
                      type="button"
                      onClick={() => void calls.fetchNextPage()}
                      className="h-11 w-full cursor-pointer rounded-lg pl-6 text-left text-xs text-muted outline-offset-[-2px] hover:bg-hover"
                    >
                      {text.common.loadMore}
                    </button>
                  ) : row.kind === 'fold' ? (
                    <Fold count={row.count} open={row.open} toggle={() => setUnfolded({ root, open: !row.open })} />
                  ) : row.kind === 'child' ? (
                    <ChildEntry relative={row.relative} depth={row.depth} shown={shown === row.relative.id} />
                  ) : (
                    <h3
                      className={clsx(
                        'truncate px-3 pb-1 text-xs',
                        row.kind === 'day' ? 'pt-3.5 font-medium text-faint' : 'pt-4 font-semibold text-muted',
                      )}
                    >
                      {row.text}
                    </h3>
                  )}
                </li>
              )
            )
          })}
        </ul>
        {query.isFetchNextPageError && (
          <Button className="mx-auto my-2 flex" onClick={() => void fetchNextPage()}>
            {text.common.loadMore}
          </Button>
        )}
      </div>
      {dragged.length > 0 && (
        <DropTargets
          dragged={dragged}
          onMoved={() => {
            setDragged([])
            selection.set([])
          }}
        />
      )}
      {selecting && <SelectionBar selection={selection} shelf={filter.shelf} conversations={conversations} />}
    </>
  )
}

/** Return the conversation of a row, if it has one. */
function named(row: Row): Named[] {
  if (row.kind === 'one') return [row.conversation]
  return row.kind === 'child' ? [{ id: row.relative.id, client_id: null }] : []
}
