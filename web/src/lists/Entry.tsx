import { clsx } from 'clsx'
import { Archive, ArchiveRestore, Ellipsis, Pencil, RotateCcw, Trash2 } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { Link } from 'wouter'
import type { Conversation } from '@/api/types'
import type { Acts } from '@/data/conversations'
import { originOf, titleOf } from '@/lists/rows'
import { StatusDot } from '@/lists/StatusDot'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { type Item, Menu } from '@/ui/Menu'
import { age, moment, plural } from '@/ui/words'

interface Props {
  conversation: Conversation
  status: string | undefined
  shown: boolean
  acts: Acts
}

/** A conversation in the list: a link, with what can be done to it behind a menu and behind keys. */
export function Entry({ conversation, status, shown, acts }: Props) {
  const [renaming, setRenaming] = useState(false)
  const [purging, setPurging] = useState(false)
  const { id } = conversation
  const title = titleOf(conversation)
  if (renaming) {
    return (
      <TitleField
        title={conversation.title}
        onEnd={(value) => {
          setRenaming(false)
          if (value && value !== conversation.title) acts.rename(id, value)
          requestAnimationFrame(() => document.querySelector<HTMLElement>(`a[data-id="${CSS.escape(id)}"]`)?.focus())
        }}
      />
    )
  }
  const items = itemsOf(
    conversation,
    acts,
    () => setRenaming(true),
    () => setPurging(true),
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
        className="flex h-full min-w-0 grow flex-col justify-center rounded-lg py-1 pl-3 outline-offset-[-2px]"
      >
        <span className="flex min-w-0 items-center gap-2">
          <StatusDot status={status} />
          <span className={clsx('truncate text-sm', shown ? 'font-semibold text-ink' : 'text-ink')} title={title}>
            {title}
          </span>
        </span>
        <span className="truncate text-xs text-faint" title={moment(conversation.updated_at)}>
          {[age(conversation.updated_at), whoseOf(conversation), plural(conversation.message_count, 'message')]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </Link>
      <Menu
        label={`Actions for ${title}`}
        icon={<Ellipsis size={16} aria-hidden />}
        items={items}
        className="md:opacity-0 md:group-hover:opacity-100 md:group-focus-within:opacity-100 md:aria-expanded:opacity-100"
      />
      {purging && (
        <Purge
          title={title}
          imported={originOf(conversation) !== ''}
          onEnd={(sure) => {
            setPurging(false)
            if (sure) acts.purge(id)
          }}
        />
      )}
    </div>
  )
}

/** From what it was brought in, else who answers; nothing where that is the usual one. */
function whoseOf(conversation: Conversation): string {
  return originOf(conversation) || (conversation.agent === 'default' ? '' : conversation.agent)
}

function itemsOf(conversation: Conversation, acts: Acts, rename: () => void, purge: () => void): Item[] {
  const { id } = conversation
  if (conversation.deleted_at !== null) {
    return [
      { label: 'Restore', icon: <RotateCcw size={15} aria-hidden />, act: () => acts.restore(id) },
      { label: 'Delete for good', danger: true, icon: <Trash2 size={15} aria-hidden />, act: purge },
    ]
  }
  const archived = conversation.archived_at !== null
  return [
    { label: 'Rename', keys: 'F2', icon: <Pencil size={15} aria-hidden />, act: rename },
    archived
      ? {
          label: 'Back to the list',
          keys: 'E',
          icon: <ArchiveRestore size={15} aria-hidden />,
          act: () => acts.archive(id, false),
        }
      : { label: 'Archive', keys: 'E', icon: <Archive size={15} aria-hidden />, act: () => acts.archive(id, true) },
    { label: 'Delete', keys: 'Del', danger: true, icon: <Trash2 size={15} aria-hidden />, act: () => acts.remove(id) },
  ]
}

/** Asks once more, for nothing brings it back. */
function Purge({ title, imported, onEnd }: { title: string; imported: boolean; onEnd: (sure: boolean) => void }) {
  return (
    <Dialog title="Delete for good?" onClose={() => onEnd(false)}>
      <div className="flex flex-col gap-5 p-5 text-sm">
        <p>
          <strong className="break-words">{title}</strong> goes with its messages, its files and its place in the
          search, out of backups too. Nothing brings it back. What was sent to a model’s provider stays there.
        </p>
        {imported && <p>The next import brings it in again for as long as its source has it.</p>}
        <div className="flex justify-end gap-2">
          <Button onClick={() => onEnd(false)}>Keep it</Button>
          <Button look="danger" onClick={() => onEnd(true)}>
            Delete for good
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** A title being edited in its place: Enter keeps it, Escape leaves it, going elsewhere keeps it. */
function TitleField({ title, onEnd }: { title: string; onEnd: (title: string | null) => void }) {
  const [text, setText] = useState(title)
  return (
    <input
      // biome-ignore lint/a11y/noAutofocus: the person asked for this field just now
      autoFocus
      aria-label="Title"
      value={text}
      maxLength={200}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => onEnd(text.trim())}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.key === 'Enter') onEnd(text.trim())
        if (event.key === 'Escape') onEnd(null)
      }}
      className="h-13 w-full rounded-lg border border-line-strong bg-raised px-3 text-sm"
    />
  )
}
