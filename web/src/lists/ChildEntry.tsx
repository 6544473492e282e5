import { clsx } from 'clsx'
import { Braces, ChevronRight } from 'lucide-react'
import { Link } from 'wouter'
import type { Relative } from '@/api/types'
import { ChildDot, stateOf } from '@/conversation/tools/Children'
import { text } from '@/text'
import { age } from '@/ui/format'

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

/** An entry that shows or hides the conversations that programs created by calling `/v1`. */
export function Calls(group: { count: number; latest: number | null; open: boolean; toggle: () => void }) {
  return (
    <button
      type="button"
      aria-expanded={group.open}
      onClick={group.toggle}
      className="flex h-13 w-full cursor-pointer items-center gap-2.5 rounded-lg pr-2 pl-2 text-left outline-offset-[-2px] hover:bg-hover"
    >
      <span className="grid size-5 shrink-0 place-items-center rounded-md bg-hover text-muted">
        <Braces size={13} aria-hidden />
      </span>
      <span className="flex min-w-0 grow flex-col">
        <span className="truncate text-sm">{text.list.calls}</span>
        <span className="truncate text-xs text-faint">
          {[group.latest === null ? '' : age(group.latest), text.list.conversations(group.count)]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </span>
      <ChevronRight
        size={14}
        aria-hidden
        className={clsx('shrink-0 transition-transform', group.open && 'rotate-90')}
      />
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
