import { clsx } from 'clsx'
import { CircleCheck, CircleDashed, CircleDot } from 'lucide-react'

const LOOKS: Record<string, { Icon: typeof CircleCheck; word: string; look: string }> = {
  completed: { Icon: CircleCheck, word: 'done', look: 'text-muted line-through decoration-line' },
  in_progress: { Icon: CircleDot, word: 'now', look: 'font-medium' },
}
const PENDING = { Icon: CircleDashed, word: 'to do', look: '' }

/** What an agent means to do, and how far each is. */
export function Plan({ entries }: { entries: { content: string; status: string }[] }) {
  const done = entries.filter((entry) => entry.status === 'completed').length
  if (!entries.length) return null
  return (
    <section
      aria-label={`Plan, ${done} of ${entries.length} done`}
      className="my-2 rounded-xl border border-line px-3.5 py-2.5 text-sm"
    >
      <ul className="space-y-1">
        {entries.map((entry, at) => {
          const { Icon, word, look } = LOOKS[entry.status] ?? PENDING
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list comes whole each time, and its words may stand there twice
            <li key={at} className="flex items-start gap-2">
              <Icon size={15} aria-label={word} className="mt-0.5 shrink-0 text-muted" />
              <span className={clsx('min-w-0', look)}>{entry.content}</span>
            </li>
          )
        })}
      </ul>
    </section>
  )
}
