import { CircleAlert, LoaderCircle } from 'lucide-react'
import { Problem } from '@/api/client'
import { runs } from '@/api/conversations'
import type { Failure, Run } from '@/api/types'
import type { Session } from '@/conversation/session'
import { isLost } from '@/conversation/transport'
import { Button } from '@/ui/Button'
import { sayProblem } from '@/ui/toasts'

interface Props {
  session: Session
  error: Error | undefined
  lost: boolean
  failure: Failure | null
  live: Run | null
  busy: boolean
}

/** What went wrong with the last run or on the way to it, and the next move. */
export function RunProblem({ session, error, lost, failure, live, busy }: Props) {
  if (lost) {
    return (
      <p role="status" className="mt-4 flex items-center gap-2.5 rounded-xl bg-warn-soft px-4 py-3 text-sm text-warn">
        <LoaderCircle size={16} aria-hidden className="animate-spin" />
        Reconnecting… What runs goes on, and nothing of it is lost.
      </p>
    )
  }
  if (busy) return null
  if (live?.status === 'interrupted') {
    const goOn = () => void runs.resume(live.id).then(() => session.sync(true), sayProblem)
    return <Notice text="The run was interrupted before it ended." label="Go on" act={goOn} />
  }
  const again = () => void session.regenerate().catch(sayProblem)
  if (failure) return <Notice text={failure.message} fix={failure.fix ?? ''} label="Try again" act={again} />
  if (!error || isLost(error)) return null
  return <Notice text={error.message} fix={error instanceof Problem ? error.fix : ''} label="Try again" act={again} />
}

function Notice({ text, fix = '', label, act }: { text: string; fix?: string; label: string; act: () => void }) {
  return (
    <div
      role="alert"
      className="mt-4 flex flex-wrap items-start gap-x-4 gap-y-3 rounded-xl border border-danger/40 bg-danger-soft px-4 py-3 text-sm"
    >
      <p className="flex min-w-0 grow items-start gap-2.5">
        <CircleAlert size={17} aria-hidden className="mt-0.5 shrink-0 text-danger" />
        <span className="min-w-0 break-words">
          {text}
          {fix && <span className="mt-1 block text-muted">{fix}</span>}
        </span>
      </p>
      <Button onClick={act}>{label}</Button>
    </div>
  )
}
