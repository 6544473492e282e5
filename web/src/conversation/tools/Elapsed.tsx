import { useEffect, useState } from 'react'
import { text } from '@/text'

const started = new Map<string, number>()

/** Seconds since this page first showed the call. */
export function Elapsed({ since }: { since: string }) {
  const start = started.get(since) ?? Date.now()
  started.set(since, start)
  const [now, setNow] = useState(start)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(0, Math.floor((now - start) / 1_000))
  if (seconds < 1) return null
  return <span className="shrink-0 text-xs tabular-nums text-faint">{text.time.elapsed(seconds)}</span>
}
