import { useEffect, useState } from 'react'

/** Return a function that copies a text, and a flag that is true for two seconds afterwards. */
export function useCopy(): { copied: boolean; copy: (text: string) => void } {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 2_000)
    return () => clearTimeout(timer)
  }, [copied])
  return { copied, copy: (text) => void navigator.clipboard.writeText(text).then(() => setCopied(true)) }
}
