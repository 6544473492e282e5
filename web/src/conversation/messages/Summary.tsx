import { clsx } from 'clsx'
import { ChevronRight } from 'lucide-react'
import { useState } from 'react'
import { Text } from '@/conversation/messages/Text'
import { type Compaction, useCompactionChanges } from '@/data/compactions'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { INPUT } from '@/ui/Field'
import { notifyError } from '@/ui/toasts'

/** A divider with the summary that models get in place of the messages above it. */
export function Summary({ conversation, compaction }: { conversation: string; compaction: Compaction }) {
  const { change, withdraw } = useCompactionChanges(conversation)
  const [open, setOpen] = useState(false)
  const [draft, setDraft] = useState<string | null>(null)
  const save = (summary: string) => change(compaction.through, summary).then(() => setDraft(null), notifyError)
  const content = [compaction.summary, compaction.plan].filter(Boolean).join('\n\n')
  return (
    <section aria-label={text.summary.title} className="my-4">
      <div className="flex items-center gap-3 text-sm text-muted before:h-px before:grow before:bg-line after:h-px after:grow after:bg-line">
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="flex min-h-9 cursor-pointer items-center gap-2 rounded-lg px-2.5 hover:bg-hover hover:text-ink max-md:min-h-11"
        >
          <ChevronRight size={15} aria-hidden className={clsx('transition-transform', open && 'rotate-90')} />
          {text.summary.title}
        </button>
      </div>
      {open && draft === null && (
        <div className="rounded-xl border border-line px-4 py-3 text-[0.9375em] text-muted">
          <Text text={content} streaming={false} />
          <div className="mt-2 flex flex-wrap gap-2">
            <Button look="quiet" onClick={() => setDraft(compaction.summary)}>
              {text.common.edit}
            </Button>
            <Button look="quiet" onClick={() => withdraw(compaction.through).catch(notifyError)}>
              {text.summary.withdraw}
            </Button>
          </div>
        </div>
      )}
      {open && draft !== null && (
        <form
          className="space-y-2"
          onSubmit={(event) => {
            event.preventDefault()
            void save(draft)
          }}
        >
          <textarea
            aria-label={text.summary.label}
            value={draft}
            onChange={(event) => setDraft(event.target.value)}
            rows={Math.min(20, draft.split('\n').length + 3)}
            className={clsx(INPUT, 'py-2')}
          />
          <div className="flex gap-2">
            <Button type="submit" look="primary" disabled={!draft.trim()}>
              {text.common.save}
            </Button>
            <Button look="quiet" onClick={() => setDraft(null)}>
              {text.common.cancel}
            </Button>
          </div>
        </form>
      )}
    </section>
  )
}
