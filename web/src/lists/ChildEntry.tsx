import { clsx } from 'clsx'
import { ChevronRight } from 'lucide-react'
import { Link } from 'wouter'
import type { Relative } from '@/api/types'
import { ChildDot, stateOf } from '@/conversation/tools/Children'
import { text } from '@/text'

/** A line below a conversation that shows or hides its sub-agents. */
export function Fold({ count, open, toggle }: { count: number; open: boolean; toggle: () => void }) {
  return (
    <button
      type="button"
      aria-expanded={open}
      onClick={toggle}
      className="flex h-11 w-full cursor-pointer items-center gap-2 rounded-lg pl-3 text-xs text-muted outline-offset-[-2px] hover:bg-hover"
    >
      <ChevronRight size={14} aria-hidden className={clsx('transition-transform', open && 'rotate-90')} />
      {text.children.count(count)}
    </button>
  )
}

/** A sub-agent in the list, indented below the conversation that started it. */
export function ChildEntry({ relative, depth, shown }: { relative: Relative; depth: number; shown: boolean }) {
  return (
    <Link
      href={`/c/${relative.id}`}
      aria-current={shown ? 'page' : undefined}
      style={{ paddingLeft: `${0.75 + depth}rem` }}
      className={clsx(
        'flex h-11 min-w-0 items-center gap-2 rounded-lg pr-2 text-sm outline-offset-[-2px]',
        shown ? 'bg-accent-soft font-semibold' : 'hover:bg-hover',
      )}
    >
      <ChildDot state={stateOf(relative)} />
      <span className="min-w-0 grow truncate">{relative.prompt || relative.agent}</span>
      <span className="shrink-0 text-xs font-normal text-faint">
        {relative.agent}
        <span className="sr-only">, {text.children.status[stateOf(relative)]}</span>
      </span>
    </Link>
  )
}
