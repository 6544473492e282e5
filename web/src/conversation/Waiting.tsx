import { ListOrdered, X } from 'lucide-react'
import { runs } from '@/api/conversations'
import type { Node, Run } from '@/api/types'
import type { Session } from '@/conversation/session'
import { IconButton } from '@/ui/Button'
import { sayProblem } from '@/ui/toasts'

/** Prompts that stand behind the run that goes on, each with a way to take it back. */
export function Waiting({
  session,
  queue,
  nodes,
}: {
  session: Session
  queue: readonly Run[]
  nodes: readonly Node[]
}) {
  if (!queue.length) return null
  return (
    <ul aria-label="Waiting behind this answer" className="mb-2 space-y-1">
      {queue.map((run) => (
        <li
          key={run.id}
          className="flex items-center gap-2.5 rounded-2xl border border-line bg-surface py-1 pr-1 pl-3.5 text-sm"
        >
          <ListOrdered size={15} aria-hidden className="shrink-0 text-faint" />
          <span className="min-w-0 grow truncate text-muted">{promptOf(run, nodes) || 'A prompt waits'}</span>
          <IconButton
            label="Take it back"
            onClick={() =>
              runs
                .cancel(run.id)
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

function promptOf(run: Run, nodes: readonly Node[]): string {
  const answer = nodes.find((node) => node.id === run.message)
  return nodes.find((node) => node.id === answer?.parent)?.line ?? ''
}
