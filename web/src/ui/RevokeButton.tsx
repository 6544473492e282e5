import { useState } from 'react'
import { text } from '@/text'
import { Button } from '@/ui/Button'

interface Props {
  /** The name of the revoked item, for screen readers. */
  name: string
  busy: boolean
  onConfirm: () => void
}

/** A button that revokes an item after a confirmation in the same place. */
export function RevokeButton({ name, busy, onConfirm }: Props) {
  const [confirming, setConfirming] = useState(false)
  if (!confirming) {
    return (
      <Button
        look="danger"
        className="whitespace-nowrap"
        onClick={() => setConfirming(true)}
        aria-label={text.tokens.revokeNamed(name)}
      >
        {text.tokens.revoke}
      </Button>
    )
  }
  return (
    <span className="flex flex-wrap gap-2">
      <Button autoFocus look="danger" disabled={busy} onClick={onConfirm}>
        {text.tokens.confirmRevoke}
      </Button>
      <Button look="quiet" onClick={() => setConfirming(false)}>
        {text.common.cancel}
      </Button>
    </span>
  )
}
