import { clsx } from 'clsx'
import type { ReactNode } from 'react'

const LOOKS = {
  plain: 'border-line bg-sunken text-muted',
  accent: 'border-accent/30 bg-accent-soft text-accent',
  good: 'border-good/30 bg-good-soft text-good',
  warn: 'border-warn/30 bg-warn-soft text-warn',
  danger: 'border-danger/30 bg-danger-soft text-danger',
}

/** A short label for a status or category. */
export function Badge({
  look = 'plain',
  children,
  className,
}: {
  look?: keyof typeof LOOKS
  children: ReactNode
  className?: string
}) {
  return (
    <span
      className={clsx(
        'inline-flex items-center rounded-md border px-1.5 py-0.5 text-xs font-medium whitespace-nowrap',
        LOOKS[look],
        className,
      )}
    >
      {children}
    </span>
  )
}
