import { ListOrdered, X } from 'lucide-react'
import { conversations } from '@/api/conversations'
import type { Queued } from '@/api/types'
import { textOf } from '@/conversation/messages/parts'
import type { Session } from '@/conversation/session'
import { IconButton } from '@/ui/Button'
import { sayProblem } from '@/ui/toasts'

/** Prompts that stand behind the run that goes on, each with a way to take it back. */
export function Waiting({ session, queue }: { session: Session; queue: readonly Queued[] }) {
  if (!queue.length) return null
  return (
    <ul aria-label="Waiting behind this answer" className="mb-2 space-y-1">
      {queue.map((run) => (
        <li
          key={run.id}
          className="flex items-center gap-2.5 rounded-2xl border border-line bg-surface py-1 pr-1 pl-3.5 text-sm"
        >
          <ListOrdered size={15} aria-hidden className="shrink-0 text-faint" />
          <span className="min-w-0 grow truncate text-muted">
            {(run.prompt && textOf(run.prompt)) || 'A prompt waits'}
          </span>
          <IconButton
            label="Take it back"
            onClick={() =>
              conversations
                .withdraw(session.id, run.id)
                .then(() => session.sync())
                .catch(sayProblem)
            }
          >
            <X size={15} aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  )
}
