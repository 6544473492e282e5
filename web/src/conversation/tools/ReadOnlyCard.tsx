import { clsx } from 'clsx'
import { ChevronRight, Eye } from 'lucide-react'
import type { Call } from '@/conversation/tools/call'
import { describe } from '@/conversation/tools/describe'
import { ToolCard, useChoice } from '@/conversation/tools/ToolCard'
import { text } from '@/text'

/** Consecutive read-only calls, collapsed into one line. */
export function ReadOnlyCard({ calls }: { calls: readonly Call[] }) {
  const [open, setOpen] = useChoice(`read-only ${calls[0]?.id}`)
  const names = calls.map((call) => describe(call.name, call.input).object)
  return (
    <section className="my-1.5">
      <button
        type="button"
        aria-expanded={open ?? false}
        onClick={() => setOpen(!open)}
        className="flex min-h-9 w-full cursor-pointer items-center gap-2.5 rounded-xl px-2.5 py-1 text-left text-sm hover:bg-hover max-md:min-h-11"
      >
        <Eye size={16} aria-hidden className="shrink-0 text-muted" />
        <span className="shrink-0 text-muted">{text.tools.readOnly(calls.length)}</span>
        <span className="min-w-0 truncate font-mono text-[0.8125rem] text-faint">{names.join(', ')}</span>
        <span className="grow" />
        <ChevronRight
          size={15}
          aria-hidden
          className={clsx('shrink-0 text-faint transition-transform', open && 'rotate-90')}
        />
      </button>
      {open && (
        <div className="ml-4 border-l border-line pl-2">
          {calls.map((call) => (
            <ToolCard key={call.id} call={call} live={false} ended />
          ))}
        </div>
      )}
    </section>
  )
}
