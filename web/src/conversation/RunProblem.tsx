import { CircleAlert, LoaderCircle } from 'lucide-react'
import { isLost, Problem } from '@/api/client'
import { runs } from '@/api/conversations'
import type { Failure, Run } from '@/api/types'
import type { Session } from '@/conversation/session'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

interface Props {
  session: Session
  error: Error | undefined
  lost: boolean
  failure: Failure | null
  live: Run | null
  busy: boolean
}

/** The error of the last run or request, with a button to retry or resume. */
export function RunProblem({ session, error, lost, failure, live, busy }: Props) {
  if (lost) {
    if (!live && !busy) return null // the banner already shows that the server can't be reached
    return (
      <p role="status" className="mt-4 flex items-center gap-2.5 rounded-xl bg-warn-soft px-4 py-3 text-sm text-warn">
        <LoaderCircle size={16} aria-hidden className="animate-spin" />
        {text.conversation.reconnecting}
      </p>
    )
  }
  if (busy) return null
  if (live?.status === 'interrupted') {
    const resume = () => void runs.resume(live.id).then(() => session.sync(true), notifyError)
    return <Notice message={text.conversation.interrupted} label={text.conversation.resume} act={resume} />
  }
  const retry = () => void session.regenerate().catch(notifyError)
  if (failure) return <Notice message={failure.message} fix={failure.fix ?? ''} label={text.common.retry} act={retry} />
  if (!error || isLost(error)) return null
  return (
    <Notice
      message={error.message}
      fix={error instanceof Problem ? error.fix : ''}
      label={text.common.retry}
      act={retry}
    />
  )
}

function Notice({ message, fix = '', label, act }: { message: string; fix?: string; label: string; act: () => void }) {
  return (
    <div
      role="alert"
      className="mt-4 flex flex-wrap items-start gap-x-4 gap-y-3 rounded-xl border border-danger/40 bg-danger-soft px-4 py-3 text-sm"
    >
      <p className="flex min-w-0 grow items-start gap-2.5">
        <CircleAlert size={17} aria-hidden className="mt-0.5 shrink-0 text-danger" />
        <span className="min-w-0 break-words">
          {message}
          {fix && <span className="mt-1 block text-muted">{fix}</span>}
        </span>
      </p>
      <Button onClick={act}>{label}</Button>
    </div>
  )
}
