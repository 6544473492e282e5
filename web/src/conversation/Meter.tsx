import type { Conversation } from '@/api/types'
import { text } from '@/text'
import { spent } from '@/ui/format'

const ROUND = 2 * Math.PI * 7

/** The context usage and the cost of a conversation. */
export function Meter({ conversation, usage }: { conversation: Conversation; usage: number | undefined }) {
  const full = usage ?? conversation.context_usage ?? null
  const { cost, unpriced_runs: unpriced, usage: tokens } = conversation
  const facts = [
    full !== null && text.meter.context(Math.round(full * 100)),
    typeof tokens.input === 'number' && text.meter.input(tokens.input),
    typeof tokens.output === 'number' && text.meter.output(tokens.output),
    (cost !== null || unpriced > 0) && text.meter.cost(spent(cost, unpriced)),
  ].filter((fact) => fact !== false)
  if (!facts.length) return null
  return (
    <span
      role="img"
      aria-label={text.common.list(facts)}
      title={facts.join(' · ')}
      className="flex items-center gap-2 px-1.5 text-xs whitespace-nowrap text-muted tabular-nums"
    >
      {full !== null && (
        <svg viewBox="0 0 18 18" className="size-4 -rotate-90" aria-hidden="true">
          <circle cx="9" cy="9" r="7" fill="none" strokeWidth="2.5" className="stroke-line" />
          <circle
            cx="9"
            cy="9"
            r="7"
            fill="none"
            strokeWidth="2.5"
            strokeDasharray={`${Math.min(1, full) * ROUND} ${ROUND}`}
            className={full > 0.8 ? 'stroke-warn' : 'stroke-accent'}
          />
        </svg>
      )}
      {(cost || unpriced > 0) && <span>{spent(cost, unpriced)}</span>}
    </span>
  )
}
