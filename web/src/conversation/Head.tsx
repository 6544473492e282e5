import { useQueryClient } from '@tanstack/react-query'
import {
  Archive,
  ArchiveRestore,
  Download,
  Ellipsis,
  GitFork,
  Link2,
  Pencil,
  Play,
  Redo2,
  Scale,
  SlidersHorizontal,
  Trash2,
} from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { conversations } from '@/api/conversations'
import type { Conversation } from '@/api/types'
import { deferred } from '@/app/deferred'
import { Facts } from '@/conversation/Facts'
import { Meter } from '@/conversation/Meter'
import type { Session } from '@/conversation/session'
import { useConversationActions } from '@/data/conversations'
import { titleOf } from '@/lists/rows'
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
  /** Start a replay of the conversation. */
  replay: () => void
}

/** The header of a conversation: title, context usage, cost, menu and facts. */
export function Head({ session, conversation, usage, replay }: Props) {
  const [naming, setNaming] = useState(false)
  const [dialog, setDialog] = useState<'export' | 'settings' | 'share' | null>(null)
  const actions = useConversationActions()
  const client = useQueryClient()
  const [, go] = useLocation()
  const refresh = () => void session.sync().then(() => client.invalidateQueries({ queryKey: ['conversations'] }))
  const { id, archived_at: archived } = conversation

  return (
    <header>
      <div className="flex min-h-12 items-center gap-1 px-3 sm:px-5">
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
            { label: text.replay.title, icon: <Play size={15} aria-hidden />, act: replay },
            {
              label: text.conversationSettings.open,
              icon: <SlidersHorizontal size={15} aria-hidden />,
              act: () => setDialog('settings'),
            },
            {
              label: text.conversation.export,
              icon: <Download size={15} aria-hidden />,
              act: () => setDialog('export'),
            },
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
      </div>
      <Facts conversation={conversation} />
      {dialog === 'export' && <Export conversation={id} onClose={() => setDialog(null)} />}
      {dialog === 'settings' && (
        <ConversationSettings conversation={conversation} onClose={() => setDialog(null)} onSaved={refresh} />
      )}
      {dialog === 'share' && <Share conversation={id} onClose={() => setDialog(null)} />}
    </header>
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
