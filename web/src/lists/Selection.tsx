import { Archive, ArchiveRestore, Pin, PinOff, RotateCcw, Tag, Trash2, X } from 'lucide-react'
import { type KeyboardEvent, useMemo, useState } from 'react'
import type { Conversation } from '@/api/types'
import { deferred } from '@/app/deferred'
import { type Shelf, useBulkActions } from '@/data/conversations'
import { useProjects } from '@/data/projects'
import { titleOf } from '@/lists/rows'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { isInDialog } from '@/ui/Dialog'

/** The conversations that are selected in the list. */
export interface Selection {
  ids: ReadonlySet<string>
  /** Select a conversation, or deselect it. */
  toggle: (id: string) => void
  /** Select these conversations only. None ends the selection. */
  set: (ids: readonly string[]) => void
}

export function useSelection(): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  return useMemo(
    () => ({
      ids,
      toggle: (id) => setIds(ids.has(id) ? new Set([...ids].filter((one) => one !== id)) : new Set([...ids, id])),
      set: (wanted) => setIds(new Set(wanted)),
    }),
    [ids],
  )
}

/** A conversation in the list while others are selected: a checkbox with its title. */
export function SelectableEntry({ conversation, selection }: { conversation: Conversation; selection: Selection }) {
  const { id } = conversation
  return (
    <label
      draggable
      className="flex h-13 cursor-pointer items-center gap-2.5 rounded-lg pr-2 pl-2 hover:bg-hover has-checked:bg-accent-soft"
    >
      <input
        type="checkbox"
        data-id={id}
        checked={selection.ids.has(id)}
        onChange={() => selection.toggle(id)}
        className="mx-0.5 size-4 shrink-0 accent-accent"
      />
      <span className="min-w-0 truncate text-sm" title={titleOf(conversation)}>
        {titleOf(conversation)}
      </span>
    </label>
  )
}

const TagsDialog = deferred(() => import('@/lists/TagsDialog'))

interface BarProps {
  selection: Selection
  shelf: Shelf
  /** The loaded conversations. */
  conversations: readonly Conversation[]
}

/** The actions on the selected conversations. Escape ends the selection. */
export function SelectionBar({ selection, shelf, conversations }: BarProps) {
  const projects = useProjects()
  const actions = useBulkActions()
  const chosen = conversations.filter(({ id }) => selection.ids.has(id))
  const [tagging, setTagging] = useState(false)
  const pinned = chosen.length > 0 && chosen.every(({ pinned_at }) => pinned_at !== null)
  const isAll = chosen.length === conversations.length
  const act = (how: (chosen: readonly Conversation[]) => Promise<void>) => {
    selection.set([])
    void how(chosen)
  }
  return (
    <div
      role="toolbar"
      aria-label={text.selection.title}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key !== 'Escape' || isInDialog(event)) return
        event.preventDefault() // keeps the drawer of a phone open
        selection.set([])
      }}
      className="mx-2 mb-2 flex flex-wrap items-center gap-1 rounded-xl border border-line bg-raised p-1 pl-3 text-sm"
    >
      <label className="flex min-h-8 min-w-0 grow cursor-pointer items-center gap-2 max-md:min-h-11">
        <input
          type="checkbox"
          aria-label={text.selection.all}
          title={text.selection.all}
          checked={isAll}
          onChange={() => selection.set(conversations.slice(0, isAll ? 0 : undefined).map(({ id }) => id))}
          className="size-4 accent-accent"
        />
        <span role="status" className="truncate">
          {text.selection.count(chosen.length)}
        </span>
      </label>
      <IconButton label={text.selection.end} onClick={() => selection.set([])}>
        <X size={16} aria-hidden />
      </IconButton>
      <div className="-ml-2 flex w-full flex-wrap items-center gap-1">
        {shelf === 'deleted' ? (
          <IconButton label={text.list.restore} onClick={() => act(actions.restore)}>
            <RotateCcw size={16} aria-hidden />
          </IconButton>
        ) : (
          <>
            <IconButton
              label={pinned ? text.list.unpin : text.list.pin}
              onClick={() => act((all) => actions.pin(all, !pinned))}
            >
              {pinned ? <PinOff size={16} aria-hidden /> : <Pin size={16} aria-hidden />}
            </IconButton>
            <IconButton label={text.list.tags} onClick={() => setTagging(chosen.length > 0)}>
              <Tag size={16} aria-hidden />
            </IconButton>
            {shelf === 'active' ? (
              <IconButton label={text.list.archive} onClick={() => act((all) => actions.archive(all, true))}>
                <Archive size={16} aria-hidden />
              </IconButton>
            ) : (
              <IconButton label={text.list.unarchive} onClick={() => act((all) => actions.archive(all, false))}>
                <ArchiveRestore size={16} aria-hidden />
              </IconButton>
            )}
            <IconButton label={text.common.delete} onClick={() => act(actions.remove)} className="text-danger!">
              <Trash2 size={16} aria-hidden />
            </IconButton>
          </>
        )}
        {shelf !== 'deleted' && projects.length > 1 && (
          <select
            aria-label={text.selection.move}
            value=""
            onChange={({ target }) => {
              const to = projects.find(({ id }) => id === target.value)
              if (to) act((all) => actions.move(all, to))
            }}
            className="h-8 min-w-0 grow basis-40 rounded-lg bg-transparent text-sm text-muted hover:bg-hover max-md:h-11"
          >
            <option value="">{text.selection.move}</option>
            {projects.map((project) => (
              <option key={project.id} value={project.id}>
                {project.name}
              </option>
            ))}
          </select>
        )}
      </div>
      {tagging && (
        <TagsDialog conversations={chosen} onClose={() => setTagging(false)} onSaved={() => selection.set([])} />
      )}
    </div>
  )
}
