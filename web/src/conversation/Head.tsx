import { useQueryClient } from '@tanstack/react-query'
import {
  Archive,
  ArchiveRestore,
  CornerLeftUp,
  Download,
  Ellipsis,
  FolderOpen,
  GitFork,
  Link2,
  Pencil,
  Redo2,
  Scale,
  SlidersHorizontal,
  Trash2,
} from 'lucide-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { conversations } from '@/api/conversations'
import type { Conversation } from '@/api/types'
import { deferred } from '@/app/deferred'
import { Meter } from '@/conversation/Meter'
import type { Session } from '@/conversation/session'
import { useTitleOf } from '@/data/approvals'
import { useConversationActions } from '@/data/conversations'
import { useProjects } from '@/data/projects'
import { originOf, titleOf } from '@/lists/rows'
import { fileHref } from '@/projects/places'
import { text } from '@/text'
import { Menu } from '@/ui/Menu'
import { notifyError } from '@/ui/toasts'

const Export = deferred(() => import('@/conversation/Export'))
const ConversationSettings = deferred(() => import('@/conversation/ConversationSettings'))
const Share = deferred(() => import('@/conversation/Share'))

interface Props {
  session: Session
  conversation: Conversation
  usage: number | undefined
}

/** The header of a conversation: title, context usage, cost and menu. */
export function Head({ session, conversation, usage }: Props) {
  const [naming, setNaming] = useState(false)
  const [dialog, setDialog] = useState<'export' | 'settings' | 'share' | null>(null)
  const actions = useConversationActions()
  const client = useQueryClient()
  const [, go] = useLocation()
  const refresh = () => void session.sync().then(() => client.invalidateQueries({ queryKey: ['conversations'] }))
  const { id, archived_at: archived } = conversation

  return (
    <header className="flex min-h-12 items-center gap-1 border-b border-line px-3 sm:px-5">
      {naming ? (
        <Name
          title={conversation.title}
          done={(title) => {
            setNaming(false)
            if (title && title !== conversation.title) conversations.change(id, { title }).then(refresh, notifyError)
          }}
        />
      ) : (
        <div className="flex min-w-0 grow items-baseline gap-2 max-sm:flex-col max-sm:items-stretch max-sm:gap-0">
          <h1 className="min-w-0 truncate text-sm font-semibold">
            <button
              type="button"
              title={text.common.rename}
              onClick={() => setNaming(true)}
              className="max-w-full cursor-text truncate rounded-md px-1 hover:bg-hover max-md:min-h-11"
            >
              {titleOf(conversation)}
            </button>
          </h1>
          <Origin conversation={conversation} />
          <Place id={conversation.project} />
          {conversation.parent && <Parent id={conversation.parent} />}
          {conversation.forked_from && (
            <Link
              href={`/c/${conversation.forked_from}`}
              className="shrink-0 rounded-md px-1 text-xs text-muted underline-offset-2 hover:underline"
            >
              {text.conversation.forked}
            </Link>
          )}
        </div>
      )}
      <Meter conversation={conversation} usage={usage} />
      <Menu
        label={text.conversation.more}
        icon={<Ellipsis size={18} aria-hidden />}
        items={[
          { label: text.common.rename, icon: <Pencil size={15} aria-hidden />, act: () => setNaming(true) },
          {
            label: text.conversation.fork,
            icon: <GitFork size={15} aria-hidden />,
            act: () => conversations.fork(id).then((made) => go(`/c/${made.id}`), notifyError),
          },
          {
            label: text.undo.redo,
            icon: <Redo2 size={15} aria-hidden />,
            act: () => void import('@/conversation/Undo').then(({ redo }) => redo(session)).catch(notifyError),
          },
          {
            label: text.conversation.compare,
            icon: <Scale size={15} aria-hidden />,
            act: () => go(`/c/${encodeURIComponent(id)}/compare`),
          },
          {
            label: text.conversationSettings.open,
            icon: <SlidersHorizontal size={15} aria-hidden />,
            act: () => setDialog('settings'),
          },
          { label: text.conversation.export, icon: <Download size={15} aria-hidden />, act: () => setDialog('export') },
          { label: text.conversation.share, icon: <Link2 size={15} aria-hidden />, act: () => setDialog('share') },
          archived
            ? {
                label: text.list.unarchive,
                icon: <ArchiveRestore size={15} aria-hidden />,
                act: () => actions.archive(id, false),
              }
            : {
                label: text.list.archive,
                icon: <Archive size={15} aria-hidden />,
                act: () => actions.archive(id, true),
              },
          {
            label: text.common.delete,
            icon: <Trash2 size={15} aria-hidden />,
            danger: true,
            act: () => {
              actions.remove(id)
              go('/')
            },
          },
        ]}
      />
      {dialog === 'export' && <Export conversation={id} onClose={() => setDialog(null)} />}
      {dialog === 'settings' && (
        <ConversationSettings conversation={conversation} onClose={() => setDialog(null)} onSaved={refresh} />
      )}
      {dialog === 'share' && <Share conversation={id} onClose={() => setDialog(null)} />}
    </header>
  )
}

/** A link from a sub-agent's conversation back to the one that started it. */
function Parent({ id }: { id: string }) {
  const title = useTitleOf(id)
  return (
    <Link
      href={`/c/${id}`}
      title={text.children.back}
      className="flex min-w-0 shrink items-center gap-1 rounded-md px-1 text-xs text-muted underline-offset-2 hover:underline max-md:min-h-11"
    >
      <CornerLeftUp size={13} aria-hidden className="shrink-0" />
      <span className="truncate">{text.children.parent(title)}</span>
    </Link>
  )
}

/** A link to the files of the conversation's project, if it has a folder. */
function Place({ id }: { id: string }) {
  const project = useProjects().find((project) => project.id === id)
  if (!project?.root_path) return null
  return (
    <Link
      href={fileHref(id)}
      title={project.root_path}
      aria-label={text.files.ofConversation(project.name)}
      className="flex min-w-0 shrink items-center gap-1 rounded-md px-1 text-xs text-muted underline-offset-2 hover:underline max-md:min-h-11"
    >
      <FolderOpen size={13} aria-hidden className="shrink-0" />
      <span className="truncate">{project.name}</span>
    </Link>
  )
}

/** The import source, with the file as a tooltip and for screen readers. */
function Origin({ conversation }: { conversation: Conversation }) {
  const origin = originOf(conversation)
  const path = String(conversation.origin?.path ?? '')
  if (!origin) return null
  return (
    <p title={path} className="shrink-0 truncate px-1 text-xs text-muted max-sm:-mt-2.5 max-sm:pb-1.5">
      {origin}
      {path && <span className="sr-only">, {path}</span>}
    </p>
  )
}

function Name({ title, done }: { title: string; done: (title: string) => void }) {
  const [value, setValue] = useState(title)
  return (
    <input
      value={value}
      // biome-ignore lint/a11y/noAutofocus: the field replaces the title that the user clicked
      autoFocus
      aria-label={text.common.title}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setValue(event.target.value)}
      onBlur={() => done(value.trim())}
      onKeyDown={(event) => {
        if (event.key === 'Enter') done(value.trim())
        if (event.key === 'Escape') done('')
      }}
      className="min-h-8 min-w-0 grow rounded-md border border-line-strong bg-raised px-2 text-sm font-semibold max-md:min-h-11"
    />
  )
}
