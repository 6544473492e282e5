import { Check, Copy } from 'lucide-react'
import type { ReactNode } from 'react'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { useCopy } from '@/ui/copy'
import { Dialog } from '@/ui/Dialog'

interface Props {
  title: string
  /** Why the secret must be copied now. */
  about: string
  secret: string
  onClose: () => void
  children?: ReactNode
}

/** A dialog that shows a new secret once, with a copy button. */
export function SecretDialog({ title, about, secret, onClose, children }: Props) {
  const { copied, copy } = useCopy()
  const Sign = copied ? Check : Copy
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="space-y-4 p-5 text-sm">
        <p className="text-muted">{about}</p>
        <div className="flex items-center gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3">
          <code className="min-w-0 grow font-mono text-sm break-all">{secret}</code>
          <Button onClick={() => copy(secret)}>
            <Sign size={15} aria-hidden />
            {copied ? text.common.copied : text.common.copy}
          </Button>
        </div>
        {children}
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose}>
            {text.common.done}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
