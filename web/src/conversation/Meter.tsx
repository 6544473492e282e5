import type { Conversation } from '@/api/types'
import { count, money } from '@/ui/words'

const ROUND = 2 * Math.PI * 7

/** How full the model's context is, and what the conversation has cost so far. */
export function Meter({ conversation, usage }: { conversation: Conversation; usage: number | undefined }) {
  const full = usage ?? conversation.context_usage ?? null
  const { cost, unpriced_runs: unpriced, usage: tokens } = conversation
  const facts = [
    full !== null && `context ${Math.round(full * 100)} % full`,
    typeof tokens.input === 'number' && `${count(tokens.input)} tokens in`,
    typeof tokens.output === 'number' && `${count(tokens.output)} out`,
    cost !== null && `cost ${money(cost)}`,
    unpriced > 0 && `${count(unpriced)} runs of unknown price`,
  ].filter(Boolean)
  if (!facts.length) return null
  return (
    <span
      role="img"
      aria-label={facts.join(', ')}
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
      {cost !== null && cost > 0 && (
        <span>
          {money(cost)}
          {unpriced > 0 && '+'}
        </span>
      )}
    </span>
  )
}
