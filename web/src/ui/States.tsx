import { clsx } from 'clsx'
import { type LucideIcon, TriangleAlert } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Problem } from '@/api/client'
import { text } from '@/text'
import { Button } from '@/ui/Button'

interface EmptyProps {
  icon: LucideIcon
  title: string
  children?: ReactNode
  action?: ReactNode
}

/** An empty state with an explanation and an optional action. */
export function Empty({ icon: Icon, title, children, action }: EmptyProps) {
  return (
    <div className="flex flex-col items-center rounded-2xl border border-dashed border-line px-6 py-12 text-center">
      <span className="mb-4 grid size-12 place-items-center rounded-full bg-accent-soft text-accent">
        <Icon size={22} aria-hidden />
      </span>
      <h2 className="text-base font-semibold">{title}</h2>
      {children && <div className="mt-1.5 max-w-md text-sm text-muted">{children}</div>}
      {action && <div className="mt-5">{action}</div>}
    </div>
  )
}

/** An error with the server's suggested fix and a retry button. */
export function Failed({ error, retry, className }: { error: unknown; retry?: () => void; className?: string }) {
  const problem = error instanceof Problem ? error : null
  return (
    <div role="alert" className={clsx('rounded-xl border border-danger/40 bg-danger-soft p-4 text-sm', className)}>
      <p className="flex items-start gap-2 font-medium text-danger">
        <TriangleAlert size={17} className="mt-0.5 shrink-0" aria-hidden />
        <span className="min-w-0 break-words">{error instanceof Error ? error.message : String(error)}</span>
      </p>
      {problem?.fix && <p className="mt-1.5 pl-6 break-words text-ink">{problem.fix}</p>}
      {problem?.requestId && (
        <p className="mt-1.5 pl-6 font-mono text-xs text-muted">{text.common.requestId(problem.requestId)}</p>
      )}
      {retry && (
        <Button className="mt-3 ml-6" onClick={retry}>
          {text.common.retry}
        </Button>
      )}
    </div>
  )
}

/** Placeholder lines shown while data is loading. */
export function Loading({ rows = 4, className }: { rows?: number; className?: string }) {
  return (
    <div role="status" aria-label={text.common.loading} className={clsx('animate-pulse space-y-3', className)}>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are identical
        <div key={row} className="h-10 rounded-lg bg-hover/70" />
      ))}
    </div>
  )
}

/** The result of a query. */
export interface Query<T> {
  data: T | undefined
  error: unknown
  refetch: () => unknown
}

interface LoadedProps<T> {
  query: Query<T>
  /** Number of placeholder lines. */
  rows?: number
  children: (data: T) => ReactNode
}

/**
 * The data of a query. Until it is there, placeholder lines or the error with a retry button. The error stays while the query is fetched
 * again in the background.
 */
export function Loaded<T>({ query: { data, error, refetch }, rows, children }: LoadedProps<T>) {
  const [failed, setFailed] = useState(error)
  if (error && error !== failed) setFailed(error)
  if (data !== undefined && failed) setFailed(null)
  if (data !== undefined) return children(data)
  if (!failed) return <Loading rows={rows} />
  const retry = () => {
    setFailed(null)
    void refetch()
  }
  return <Failed error={failed} retry={retry} />
}
