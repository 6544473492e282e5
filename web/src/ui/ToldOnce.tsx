import { Check, Copy } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/ui/Button'
import { useCopy } from '@/ui/copy'
import { Dialog } from '@/ui/Dialog'

interface Props {
  title: string
  /** Why it has to be kept now. */
  about: string
  text: string
  onClose: () => void
  children?: ReactNode
}

/** A secret that was just made: to be copied now, for nobody can tell it again. */
export function ToldOnce({ title, about, text, onClose, children }: Props) {
  const { copied, copy } = useCopy()
  const Sign = copied ? Check : Copy
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="space-y-4 p-5 text-sm">
        <p className="text-muted">{about}</p>
        <div className="flex items-center gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3">
          <code className="min-w-0 grow font-mono text-sm break-all">{text}</code>
          <Button onClick={() => copy(text)}>
            <Sign size={15} aria-hidden />
            {copied ? 'Copied' : 'Copy'}
          </Button>
        </div>
        {children}
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
