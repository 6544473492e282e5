import { useState } from 'react'
import { Button } from '@/ui/Button'

interface Props {
  /** What it does, in a word or two. */
  act: string
  /** What it is done to, for who can't see the row. */
  name: string
  busy: boolean
  onSure: () => void
}

/** A button for what nothing brings back: it asks once more, in its place. */
export function TakeBack({ act, name, busy, onSure }: Props) {
  const [asking, setAsking] = useState(false)
  if (!asking) {
    return (
      <Button look="danger" className="whitespace-nowrap" onClick={() => setAsking(true)} aria-label={`${act} ${name}`}>
        {act}
      </Button>
    )
  }
  return (
    <span className="flex flex-wrap gap-2">
      <Button autoFocus look="danger" disabled={busy} onClick={onSure}>
        {act} for good
      </Button>
      <Button look="quiet" onClick={() => setAsking(false)}>
        Keep
      </Button>
    </span>
  )
}
