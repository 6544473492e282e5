import { clsx } from 'clsx'
import { ChevronRight } from 'lucide-react'
import { Link } from 'wouter'
import type { Relative } from '@/api/types'
import { useAround } from '@/conversation/messages/context'
import { useChildren } from '@/data/children'
import { text } from '@/text'
import { money, spent } from '@/ui/format'

const LOOKS: Record<string, string> = {
  running: 'bg-accent animate-pulse',
  pending: 'bg-warn',
  standby: 'border-2 border-faint',
  finished: 'bg-good',
  failed: 'bg-danger',
  cancelled: 'bg-faint',
}

/** The sub-agents that this call of the open conversation started, updated while they work. */
export function CallChildren({ call }: { call: string }) {
  const { session, live } = useAround()
  const found = useChildren(session.id, live !== null)
  return <Children found={found.filter((child) => child.call === call)} />
}

/** Return the state to show: the outcome of an ended run, or the current activity. */
export function stateOf({ status, run_status }: Relative): string {
  return status === 'finished' && (run_status === 'failed' || run_status === 'cancelled') ? run_status : status
}

/** The sub-agents that a call started, each with a link to its conversation and those below it. */
export function Children({ found }: { found: readonly Relative[] }) {
  if (!found.length) return <p className="px-3.5 py-3 text-sm text-muted">{text.children.none}</p>
  return (
    <ul aria-label={text.tools.subagents} className="py-1">
      {found.map((child) => (
        <Child key={child.id} child={child} />
      ))}
    </ul>
  )
}

function Child({ child }: { child: Relative }) {
  const files = child.files.length ? text.children.wrote(child.files.join(', ')) : ''
  return (
    <li className="px-1.5">
      <Link
        href={`/c/${child.id}`}
        className="flex min-h-9 items-center gap-2.5 rounded-lg px-2 py-1 text-sm hover:bg-hover max-md:min-h-11"
      >
        <ChildDot state={stateOf(child)} />
        <span className="min-w-0 grow">
          <span className="block truncate">
            <span className="font-medium">{child.agent}</span> <span className="text-muted">{child.prompt}</span>
          </span>
          {files && <span className="block truncate text-xs text-faint">{files}</span>}
        </span>
        <span className="shrink-0 text-right text-xs text-faint">
          {[text.children.status[stateOf(child)], costOf(child)].filter(Boolean).join(' · ')}
        </span>
        <ChevronRight size={15} aria-hidden className="shrink-0 text-faint" />
      </Link>
      {child.children.length > 0 && (
        <div className="ml-3 border-l border-line">
          <Children found={child.children} />
        </div>
      )}
    </li>
  )
}

/** Return the cost of a sub-agent and those below it. Empty if there is no cost, or if it is not known yet. */
function costOf({ cost, unpriced_runs: unpriced, status }: Relative): string {
  if (cost && unpriced) return spent(cost, unpriced)
  if (cost === null || unpriced) return status === 'finished' ? text.children.unknownCost : ''
  return cost ? money(cost) : ''
}

/** A dot in the color of a sub-agent's state. The state is written next to it. */
export function ChildDot({ state }: { state: string }) {
  return <span aria-hidden className={clsx('size-2 shrink-0 rounded-full', LOOKS[state])} />
}
