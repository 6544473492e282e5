import { useQueryClient } from '@tanstack/react-query'
import { Archive, ArchiveRestore, Download, Ellipsis, GitFork, Link2, Pencil, Scale, Trash2 } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { conversations } from '@/api/conversations'
import type { Conversation } from '@/api/types'
import { Meter } from '@/conversation/Meter'
import type { Session } from '@/conversation/session'
import { useActs } from '@/data/conversations'
import { originOf, titleOf } from '@/lists/rows'
import { Menu } from '@/ui/Menu'
import { sayProblem } from '@/ui/toasts'

const Export = lazy(() => import('@/conversation/Export'))
const Share = lazy(() => import('@/conversation/Share'))

interface Props {
  session: Session
  conversation: Conversation
  usage: number | undefined
}

/** The name of a conversation, how full its context is, and what can be done with it as a whole. */
export function Head({ session, conversation, usage }: Props) {
  const [naming, setNaming] = useState(false)
  const [dialog, setDialog] = useState<'export' | 'share' | null>(null)
  const acts = useActs()
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
            if (title && title !== conversation.title) conversations.change(id, { title }).then(refresh, sayProblem)
          }}
        />
      ) : (
        <div className="flex min-w-0 grow items-baseline gap-2 max-sm:flex-col max-sm:items-stretch max-sm:gap-0">
          <h1 className="min-w-0 truncate text-sm font-semibold">
            <button
              type="button"
              title="Rename"
              onClick={() => setNaming(true)}
              className="max-w-full cursor-text truncate rounded-md px-1 hover:bg-hover max-md:min-h-11"
            >
              {titleOf(conversation)}
            </button>
          </h1>
          <Origin conversation={conversation} />
          {conversation.forked_from && (
            <Link
              href={`/c/${conversation.forked_from}`}
              className="shrink-0 rounded-md px-1 text-xs text-muted underline-offset-2 hover:underline"
            >
              copied from the original
            </Link>
          )}
        </div>
      )}
      <Meter conversation={conversation} usage={usage} />
      <Menu
        label="More"
        icon={<Ellipsis size={18} aria-hidden />}
        items={[
          { label: 'Rename', icon: <Pencil size={15} aria-hidden />, act: () => setNaming(true) },
          {
            label: 'Go on in a copy',
            icon: <GitFork size={15} aria-hidden />,
            act: () => conversations.fork(id).then((made) => go(`/c/${made.id}`), sayProblem),
          },
          {
            label: 'Compare',
            icon: <Scale size={15} aria-hidden />,
            act: () => go(`/c/${encodeURIComponent(id)}/compare`),
          },
          { label: 'Export…', icon: <Download size={15} aria-hidden />, act: () => setDialog('export') },
          { label: 'Share…', icon: <Link2 size={15} aria-hidden />, act: () => setDialog('share') },
          archived
            ? {
                label: 'Bring back from the archive',
                icon: <ArchiveRestore size={15} aria-hidden />,
                act: () => acts.archive(id, false),
              }
            : { label: 'Archive', icon: <Archive size={15} aria-hidden />, act: () => acts.archive(id, true) },
          {
            label: 'Delete',
            icon: <Trash2 size={15} aria-hidden />,
            danger: true,
            act: () => {
              acts.remove(id)
              go('/')
            },
          },
        ]}
      />
      <Suspense>
        {dialog === 'export' && <Export conversation={id} onClose={() => setDialog(null)} />}
        {dialog === 'share' && <Share conversation={id} onClose={() => setDialog(null)} />}
      </Suspense>
    </header>
  )
}

/** What it was brought in from; the file on a resting pointer, or to be read out. */
function Origin({ conversation }: { conversation: Conversation }) {
  const words = originOf(conversation)
  const path = String(conversation.origin?.path ?? '')
  if (!words) return null
  return (
    <p title={path} className="shrink-0 truncate px-1 text-xs text-muted max-sm:-mt-2.5 max-sm:pb-1.5">
      {words}
      {path && <span className="sr-only">, {path}</span>}
    </p>
  )
}

function Name({ title, done }: { title: string; done: (title: string) => void }) {
  const [text, setText] = useState(title)
  return (
    <input
      value={text}
      // biome-ignore lint/a11y/noAutofocus: the field takes the place of the name that was clicked
      autoFocus
      aria-label="Title"
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => done(text.trim())}
      onKeyDown={(event) => {
        if (event.key === 'Enter') done(text.trim())
        if (event.key === 'Escape') done('')
      }}
      className="min-h-8 min-w-0 grow rounded-md border border-line-strong bg-raised px-2 text-sm font-semibold max-md:min-h-11"
    />
  )
}
