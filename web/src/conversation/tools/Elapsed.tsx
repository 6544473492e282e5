import { useEffect, useState } from 'react'

const begun = new Map<string, number>()

/** Seconds since this call was first seen here. */
export function Elapsed({ since }: { since: string }) {
  const start = begun.get(since) ?? Date.now()
  begun.set(since, start)
  const [now, setNow] = useState(start)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(0, Math.floor((now - start) / 1_000))
  if (seconds < 1) return null
  return (
    <span className="shrink-0 text-xs tabular-nums text-faint">
      {seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`}
    </span>
  )
}
