import { ChevronLeft, ChevronRight } from 'lucide-react'
import { siblings } from '@/conversation/messages/branches'
import { useAround } from '@/conversation/messages/context'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

/** Navigation between the versions of a message. Hidden if there is only one. */
export function Branches({ id }: { id: string }) {
  const { session, nodes, live } = useAround()
  const all = siblings(nodes, id)
  const at = all.findIndex((node) => node.id === id)
  if (all.length < 2) return null
  const step = (by: number) => {
    const next = all[at + by]
    if (next) session.switchTo(next.id).catch(notifyError)
  }
  return (
    <span className="flex items-center text-xs text-muted">
      <IconButton label={text.message.previousVersion} disabled={at <= 0 || live !== null} onClick={() => step(-1)}>
        <ChevronLeft size={15} aria-hidden />
      </IconButton>
      <span className="tabular-nums">
        <span className="sr-only">{text.message.version}</span>
        {at + 1}/{all.length}
      </span>
      <IconButton
        label={text.message.nextVersion}
        disabled={at >= all.length - 1 || live !== null}
        onClick={() => step(1)}
      >
        <ChevronRight size={15} aria-hidden />
      </IconButton>
    </span>
  )
}
