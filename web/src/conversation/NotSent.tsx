import { CloudOff } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { outbox, type Unsent, wordsOf } from '@/conversation/outbox'
import type { Session } from '@/conversation/session'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { notify } from '@/ui/toasts'

interface Props {
  session: Session
  /** Prompts that are being sent now. */
  sending: readonly string[]
  /** Put the prompt back into the composer. */
  edit: (entry: Unsent) => void
}

/** The list of prompts that the server has not acknowledged. They are kept, even after a reload, until they are sent or removed. */
export function NotSent({ session, sending, edit }: Props) {
  const all = useSyncExternalStore(outbox.subscribe, outbox.get)
  const shown = all.filter((one) => one.conversation === session.id && !sending.includes(one.id))
  if (!shown.length) return null
  return (
    <ul aria-label={text.outbox.title} className="mb-2 space-y-1.5">
      {shown.map((entry) => (
        <Item key={entry.id} entry={entry} session={session} edit={edit} />
      ))}
    </ul>
  )
}

function Item({ entry, session, edit }: { entry: Unsent; session: Session; edit: (entry: Unsent) => void }) {
  const undo = { label: text.common.undo, act: () => void outbox.put(entry) }
  return (
    <li className="rounded-2xl border border-danger/40 bg-danger-soft px-3.5 py-2.5 text-sm">
      <p className="max-h-32 overflow-y-auto break-words whitespace-pre-wrap">{wordsOf(entry)}</p>
      <div className="mt-1.5 flex flex-wrap items-center gap-x-1.5 gap-y-1">
        <p role="status" className="mr-auto flex min-w-0 items-center gap-2 text-danger">
          <CloudOff size={15} aria-hidden className="shrink-0" />
          <span className="min-w-0 break-words">
            <strong className="font-medium">{text.outbox.notSent}</strong>
            {entry.reason && ` · ${entry.reason}`}
          </span>
        </p>
        <Button
          look="quiet"
          onClick={() => {
            outbox.remove(entry.id)
            notify(text.outbox.removed, { action: undo })
          }}
        >
          {text.outbox.remove}
        </Button>
        <Button look="quiet" onClick={() => edit(entry)}>
          {text.common.edit}
        </Button>
        <Button onClick={() => void session.deliver(entry)}>{text.common.retry}</Button>
      </div>
    </li>
  )
}
