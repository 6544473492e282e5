import { ListOrdered, X } from 'lucide-react'
import { conversations } from '@/api/conversations'
import type { Queued } from '@/api/types'
import { textOf } from '@/conversation/messages/parts'
import type { Session } from '@/conversation/session'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

/** Queued prompts, each with a button to remove it. */
export function Waiting({ session, queue }: { session: Session; queue: readonly Queued[] }) {
  if (!queue.length) return null
  return (
    <ul aria-label={text.conversation.queue} className="mb-2 space-y-1">
      {queue.map((run) => (
        <li
          key={run.id}
          className="flex items-center gap-2.5 rounded-2xl border border-line bg-surface py-1 pr-1 pl-3.5 text-sm"
        >
          <ListOrdered size={15} aria-hidden className="shrink-0 text-faint" />
          <span className="min-w-0 grow truncate text-muted">
            {(run.prompt && textOf(run.prompt)) || text.conversation.queued}
          </span>
          <IconButton
            label={text.conversation.unqueue}
            onClick={() =>
              conversations
                .withdraw(session.id, run.id)
                .then(() => session.sync())
                .catch(notifyError)
            }
          >
            <X size={15} aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  )
}
