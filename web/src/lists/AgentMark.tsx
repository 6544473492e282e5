import { clsx } from 'clsx'
import type { CSSProperties } from 'react'
import { agentName, hueOf, lettersOf } from '@/lists/agents'

/** A colored mark with the first letters of an agent's name. Its name is a tooltip; where it isn't shown elsewhere, also for screen readers. */
export function AgentMark({
  agent,
  named = false,
  size = 'small',
}: {
  agent: string
  named?: boolean
  size?: 'small' | 'large'
}) {
  const name = agentName(agent)
  return (
    <span
      title={name}
      style={{ '--hue': hueOf(name) } as CSSProperties}
      className={clsx(
        'agent-mark grid shrink-0 place-items-center rounded-md font-semibold select-none',
        size === 'small' ? 'size-5 text-[0.625rem]' : 'size-7 text-xs',
      )}
    >
      <span aria-hidden>{lettersOf(name)}</span>
      {named && <span className="sr-only">{name}</span>}
    </span>
  )
}
