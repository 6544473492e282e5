import { clsx } from 'clsx'
import { Circle, CircleCheck, CircleDot } from 'lucide-react'
import type { Json } from '@/api/types'
import { stateOf } from '@/conversation/tools/describe'
import { Output } from '@/conversation/tools/Output'
import { text } from '@/text'

const ICONS = { completed: CircleCheck, in_progress: CircleDot }

/** The todo list of a longer task. */
export function TodoList({ input, output }: { input: Json | undefined; output: Json | undefined }) {
  const items = itemsOf(input) ?? itemsOf(output)
  if (!items) return <Output value={output} />
  return (
    <ol className="space-y-1.5 border-t border-line px-3.5 py-3 text-sm">
      {items.map((item, at) => {
        const state = stateOf(item)
        const Icon = ICONS[state as keyof typeof ICONS] ?? Circle
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: items have no id
          <li key={at} className="flex gap-2.5">
            <Icon
              size={16}
              aria-hidden
              className={clsx(
                'mt-0.5 shrink-0',
                state === 'completed' ? 'text-good' : state === 'in_progress' ? 'text-accent' : 'text-faint',
              )}
            />
            <span
              className={clsx(
                state === 'completed' && 'text-muted line-through decoration-line-strong',
                state === 'in_progress' && 'font-medium',
              )}
            >
              <span className="sr-only">{text.tools.todo[state] ?? state}: </span>
              {String(item.content ?? '')}
            </span>
          </li>
        )
      })}
    </ol>
  )
}

function itemsOf(value: Json | undefined): Record<string, Json>[] | null {
  const list = Array.isArray(value) ? value : value && typeof value === 'object' ? (value.todos ?? value.items) : null
  if (!Array.isArray(list)) return null
  return list.filter(
    (item): item is Record<string, Json> => typeof item === 'object' && item !== null && !Array.isArray(item),
  )
}
