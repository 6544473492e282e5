import { clsx } from 'clsx'
import { ChevronRight } from 'lucide-react'
import { useState } from 'react'
import { Text } from '@/conversation/messages/Text'
import { text } from '@/text'

/** Reasoning of the model or output of a subagent, collapsed into one line. */
export function Reasoning({ content, thinking, title }: { content: string; thinking: boolean; title?: string }) {
  const [open, setOpen] = useState(false)
  const last = content.trimEnd().split('\n').at(-1)?.replaceAll('**', '') ?? ''
  return (
    <section className="my-1.5">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-9 max-w-full cursor-pointer items-center gap-2 rounded-lg px-2.5 text-sm text-muted hover:bg-hover hover:text-ink max-md:min-h-11"
      >
        <ChevronRight size={15} aria-hidden className={clsx('shrink-0 transition-transform', open && 'rotate-90')} />
        <span className={clsx('shrink-0', thinking && 'animate-pulse')}>
          {title ?? (thinking ? text.message.thinking : text.message.reasoning)}
        </span>
        {!open && (thinking || title) && <span className="min-w-0 truncate text-faint">{last}</span>}
      </button>
      {open && (
        <div className="mt-1 ml-4 border-l-2 border-line pl-4 text-[0.9375em] text-muted">
          <Text text={content} streaming={thinking} />
        </div>
      )}
    </section>
  )
}
