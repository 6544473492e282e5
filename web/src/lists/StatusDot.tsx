import { clsx } from 'clsx'
import { text } from '@/text'

const LOOKS: Record<string, [label: string, look: string]> = {
  running: [text.list.status.running, 'bg-accent animate-pulse'],
  waiting: [text.list.status.waiting, 'bg-warn'],
  interrupted: [text.list.status.interrupted, 'border-2 border-warn'],
  queued: [text.list.status.queued, 'border-2 border-accent'],
}

/** A dot with the status of a live run. Render nothing without one. */
export function StatusDot({ status, className }: { status: string | undefined; className?: string }) {
  const known = LOOKS[status ?? '']
  if (!known) return null
  return (
    <span title={known[0]} className={clsx('inline-block size-2 shrink-0 rounded-full', known[1], className)}>
      <span className="sr-only">({known[0]})</span>
    </span>
  )
}
