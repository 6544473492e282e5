import { useEffect, useState, useSyncExternalStore } from 'react'
import type { Message } from '@/api/types'
import { useAround } from '@/conversation/messages/context'
import { waitOf } from '@/conversation/messages/progress'
import { text } from '@/text'

/** Seconds after which the time of a state is shown. */
const PATIENCE = 3

/** The current activity of a response that is being written, shown while nothing else indicates progress. */
export function Progress({ message }: { message: Message | undefined }) {
  const { session } = useAround()
  const { notice } = useSyncExternalStore(session.subscribe, session.get)
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const wait = waitOf(message?.parts ?? [], notice, now)
  const label = wait?.label ?? ''
  const [since, setSince] = useState({ label, at: now })
  if (since.label !== label) setSince({ label, at: now })
  if (!wait) return null
  const seconds = wait.until === null ? Math.floor((now - since.at) / 1_000) : Math.ceil((wait.until - now) / 1_000)
  return (
    <p className="flex min-h-8 items-center gap-2.5 px-2.5 text-sm text-muted">
      <span className="flex shrink-0 items-center gap-1" aria-hidden>
        {[0, 1, 2].map((dot) => (
          <span key={dot} className="dot size-1.5 rounded-full bg-faint" />
        ))}
      </span>
      <span className="tabular-nums">
        {/* the sentence is announced once, the seconds are not */}
        <span role="status">{label}</span>
        {wait.until !== null
          ? wait.countdown(text.time.elapsed(Math.max(1, seconds)))
          : seconds >= PATIENCE && text.progress.lasting(text.time.elapsed(seconds))}
      </span>
    </p>
  )
}
