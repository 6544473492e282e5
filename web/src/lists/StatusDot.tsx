import { clsx } from 'clsx'

const LOOKS: Record<string, [words: string, look: string]> = {
  running: ['running', 'bg-accent animate-pulse'],
  waiting: ['waits for you', 'bg-warn'],
  interrupted: ['interrupted', 'border-2 border-warn'],
  queued: ['queued', 'border-2 border-accent'],
}

/** What goes on in a conversation: a dot, and words for who can't see it. Nothing where nothing goes on. */
export function StatusDot({ status, className }: { status: string | undefined; className?: string }) {
  const known = LOOKS[status ?? '']
  if (!known) return null
  return (
    <span title={known[0]} className={clsx('inline-block size-2 shrink-0 rounded-full', known[1], className)}>
      <span className="sr-only">({known[0]})</span>
    </span>
  )
}
