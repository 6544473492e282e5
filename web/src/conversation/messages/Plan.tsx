import { clsx } from 'clsx'
import { CircleCheck, CircleDashed, CircleDot } from 'lucide-react'
import { text } from '@/text'

const LOOKS: Record<string, { Icon: typeof CircleCheck; label: string | undefined; look: string }> = {
  completed: { Icon: CircleCheck, label: text.tools.todo.completed, look: 'text-muted line-through decoration-line' },
  in_progress: { Icon: CircleDot, label: text.tools.todo.in_progress, look: 'font-medium' },
}
const PENDING = { Icon: CircleDashed, label: text.tools.todo.pending, look: '' }

/** An agent's plan with the status of each entry. */
export function Plan({ entries }: { entries: { content: string; status: string }[] }) {
  const done = entries.filter((entry) => entry.status === 'completed').length
  if (!entries.length) return null
  return (
    <section
      aria-label={text.message.plan(done, entries.length)}
      className="my-2 rounded-xl border border-line px-3.5 py-2.5 text-sm"
    >
      <ul className="space-y-1">
        {entries.map((entry, at) => {
          const { Icon, label, look } = LOOKS[entry.status] ?? PENDING
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: entries have no id and may repeat
            <li key={at} className="flex items-start gap-2">
              <Icon size={15} aria-label={label} className="mt-0.5 shrink-0 text-muted" />
              <span className={clsx('min-w-0', look)}>{entry.content}</span>
            </li>
          )
        })}
      </ul>
    </section>
  )
}
