import { clsx } from 'clsx'
import {
  Archive,
  ArchiveRestore,
  Ellipsis,
  Pencil,
  Pin,
  PinOff,
  RotateCcw,
  SquareCheck,
  Tag,
  Trash2,
} from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { Link } from 'wouter'
import type { Conversation } from '@/api/types'
import { deferred } from '@/app/deferred'
import type { ConversationActions } from '@/data/conversations'
import { AgentMark } from '@/lists/AgentMark'
import { agentOf } from '@/lists/agents'
import { originOf, titleOf } from '@/lists/rows'
import { StatusDot } from '@/lists/StatusDot'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { age, moment } from '@/ui/format'
import { type Item, Menu } from '@/ui/Menu'

interface Props {
  conversation: Conversation
  status: string | undefined
  shown: boolean
  /** Indent the entry, below the one that groups it. */
  inside?: boolean
  actions: ConversationActions
  /** Select this conversation, and show checkboxes for the others. */
  select: () => void
}

/** A conversation in the list: a link with a menu and keyboard shortcuts. */
export function Entry({ conversation, status, shown, inside, actions, select }: Props) {
  const [renaming, setRenaming] = useState(false)
  const [purging, setPurging] = useState(false)
  const [tagging, setTagging] = useState(false)
  const { id } = conversation
  const title = titleOf(conversation)
  if (renaming) {
    return (
      <TitleField
        title={conversation.title}
        onEnd={(value) => {
          setRenaming(false)
          if (value && value !== conversation.title) actions.rename(id, value)
          requestAnimationFrame(() => document.querySelector<HTMLElement>(`a[data-id="${CSS.escape(id)}"]`)?.focus())
        }}
      />
    )
  }
  const items = itemsOf(
    conversation,
    actions,
    () => setRenaming(true),
    () => setPurging(true),
    () => setTagging(true),
    select,
  )
  const byKey = new Map(items.map((item) => [item.keys === 'Del' ? 'delete' : item.keys?.toLowerCase(), item.act]))
  return (
    <div
      className={clsx(
        'group relative flex h-13 items-center rounded-lg pr-1',
        shown ? 'bg-accent-soft' : 'hover:bg-hover',
      )}
    >
      <Link
        href={`/c/${id}`}
        data-id={id}
        aria-current={shown ? 'page' : undefined}
        onKeyDown={(event: KeyboardEvent) => {
          const act = event.ctrlKey || event.altKey || event.metaKey ? undefined : byKey.get(event.key.toLowerCase())
          if (!act) return
          event.preventDefault()
          act()
        }}
        onDoubleClick={() => setRenaming(true)}
        className={clsx(
          'flex h-full min-w-0 grow items-center gap-2.5 rounded-lg py-1 outline-offset-[-2px]',
          inside ? 'pl-6' : 'pl-2',
        )}
      >
        <AgentMark agent={agentOf(conversation)} />
        <span className="flex min-w-0 grow flex-col justify-center">
          <span className="flex min-w-0 items-center gap-2">
            <StatusDot status={status} />
            <span className={clsx('truncate text-sm', shown ? 'font-semibold text-ink' : 'text-ink')} title={title}>
              {title}
            </span>
          </span>
          <span className="flex min-w-0 items-center gap-1.5 text-xs text-faint">
            <span className="truncate" title={moment(conversation.updated_at)}>
              {[age(conversation.updated_at), whoseOf(conversation), text.list.messages(conversation.message_count)]
                .filter(Boolean)
                .join(' · ')}
            </span>
            <TagChips tags={conversation.tags} />
          </span>
        </span>
      </Link>
      <Menu
        label={text.list.actions(title)}
        icon={<Ellipsis size={16} aria-hidden />}
        items={items}
        className="md:opacity-0 md:group-hover:opacity-100 md:group-focus-within:opacity-100 md:aria-expanded:opacity-100"
      />
      {tagging && <TagsDialog conversations={[conversation]} onClose={() => setTagging(false)} />}
      {purging && (
        <Purge
          title={title}
          imported={originOf(conversation) !== ''}
          onEnd={(sure) => {
            setPurging(false)
            if (sure) actions.purge(id)
          }}
        />
      )}
    </div>
  )
}

const TagsDialog = deferred(() => import('@/lists/TagsDialog'))

/** The first tags of a conversation, and the number of the others. */
function TagChips({ tags }: { tags: readonly string[] }) {
  const [first, ...others] = tags
  if (!first) return null
  return (
    <span className="flex max-w-1/2 shrink-0 items-center gap-1" title={tags.join(', ')}>
      <span className="truncate rounded-md bg-sunken px-1.5 text-muted">{first}</span>
      {others.length > 0 && <span aria-hidden>+{others.length}</span>}
      {others.length > 0 && <span className="sr-only">{others.join(', ')}</span>}
    </span>
  )
}

/** Return the import source or the agent's name. Empty for the default agent. */
function whoseOf(conversation: Conversation): string {
  return originOf(conversation) || (conversation.agent === 'default' ? '' : conversation.agent)
}

function itemsOf(
  conversation: Conversation,
  actions: ConversationActions,
  rename: () => void,
  purge: () => void,
  tag: () => void,
  select: () => void,
): Item[] {
  const { id } = conversation
  const selects = { label: text.selection.start, keys: 'X', icon: <SquareCheck size={15} aria-hidden />, act: select }
  if (conversation.deleted_at !== null) {
    return [
      { label: text.list.restore, icon: <RotateCcw size={15} aria-hidden />, act: () => actions.restore(id) },
      selects,
      { label: text.list.deletePermanently, danger: true, icon: <Trash2 size={15} aria-hidden />, act: purge },
    ]
  }
  const archived = conversation.archived_at !== null
  const pinned = conversation.pinned_at !== null
  return [
    {
      label: pinned ? text.list.unpin : text.list.pin,
      keys: 'P',
      icon: pinned ? <PinOff size={15} aria-hidden /> : <Pin size={15} aria-hidden />,
      act: () => actions.pin(id, !pinned),
    },
    { label: text.common.rename, keys: 'F2', icon: <Pencil size={15} aria-hidden />, act: rename },
    { label: text.list.tags, keys: 'L', icon: <Tag size={15} aria-hidden />, act: tag },
    archived
      ? {
          label: text.list.unarchive,
          keys: 'E',
          icon: <ArchiveRestore size={15} aria-hidden />,
          act: () => actions.archive(id, false),
        }
      : {
          label: text.list.archive,
          keys: 'E',
          icon: <Archive size={15} aria-hidden />,
          act: () => actions.archive(id, true),
        },
    selects,
    {
      label: text.common.delete,
      keys: 'Del',
      danger: true,
      icon: <Trash2 size={15} aria-hidden />,
      act: () => actions.remove(id),
    },
  ]
}

/** Ask for confirmation before a permanent deletion. */
function Purge({ title, imported, onEnd }: { title: string; imported: boolean; onEnd: (sure: boolean) => void }) {
  return (
    <Dialog title={text.list.purgeTitle} onClose={() => onEnd(false)}>
      <div className="flex flex-col gap-5 p-5 text-sm">
        <p>
          <strong className="break-words">{title}</strong>
        </p>
        <p>{text.list.purgeAbout}</p>
        {imported && <p>{text.list.purgeImported}</p>}
        <div className="flex justify-end gap-2">
          <Button onClick={() => onEnd(false)}>{text.common.cancel}</Button>
          <Button look="danger" onClick={() => onEnd(true)}>
            {text.list.deletePermanently}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** Edit a title in place. Enter or blur saves; Escape cancels. */
function TitleField({ title, onEnd }: { title: string; onEnd: (title: string | null) => void }) {
  const [value, setValue] = useState(title)
  return (
    <input
      // biome-ignore lint/a11y/noAutofocus: the user just chose Rename
      autoFocus
      aria-label={text.common.title}
      value={value}
      maxLength={200}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setValue(event.target.value)}
      onBlur={() => onEnd(value.trim())}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.key === 'Enter') onEnd(value.trim())
        if (event.key === 'Escape') onEnd(null)
      }}
      className="h-13 w-full rounded-lg border border-line-strong bg-raised px-3 text-sm"
    />
  )
}
