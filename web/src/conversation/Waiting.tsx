import { CornerDownRight, ListOrdered, type LucideIcon, X } from 'lucide-react'
import type { Message, Queue } from '@/api/types'
import { textOf } from '@/conversation/messages/parts'
import type { Session } from '@/conversation/session'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

/** Prefix of the ids of notes about messages that a hook blocked. */
const BLOCKED = 'blocked-'

/** The id of a message that the run has read or a hook has blocked. */
function takenId(part: Message['parts'][number]): string[] {
  if (part.type === 'steering-message') return [part.id]
  const id = part.type === 'data-note' && 'id' in part ? String(part.id) : ''
  return id.startsWith(BLOCKED) ? [id.slice(BLOCKED.length)] : []
}

interface Props {
  session: Session
  queue: Queue
  /** The message that is being written. It contains the steered messages that its run has received. */
  live: Message | undefined
}

/** Prompts that no model has read yet, with a button to remove each. Prompts for the live run come first, then queued ones. */
export function Waiting({ session, queue, live }: Props) {
  const read = new Set(live?.parts.flatMap(takenId))
  const steered = queue.steered.filter(({ id, stored_id }) => !read.has(id) && !read.has(stored_id ?? ''))
  if (!steered.length && !queue.runs.length) return null
  return (
    <ul aria-label={text.conversation.queue} className="mb-2 space-y-1">
      {steered.map((message) => (
        <Item
          key={message.id}
          icon={CornerDownRight}
          note={text.conversation.atNextStep}
          words={textOf(message)}
          remove={() => void session.withdrawSteered(message).catch(notifyError)}
        />
      ))}
      {queue.runs.map((run) => (
        <Item
          key={run.id}
          icon={ListOrdered}
          words={(run.prompt && textOf(run.prompt)) || text.conversation.queued}
          remove={() => void session.withdraw(run).catch(notifyError)}
        />
      ))}
    </ul>
  )
}

interface ItemProps {
  icon: LucideIcon
  words: string
  note?: string
  remove: () => void
}

function Item({ icon: Icon, words, note, remove }: ItemProps) {
  return (
    <li className="flex items-center gap-2.5 rounded-2xl border border-line bg-surface py-1 pr-1 pl-3.5 text-sm">
      <Icon size={15} aria-hidden className="shrink-0 text-faint" />
      <span className="min-w-0 grow truncate text-muted">{words}</span>
      {note && <span className="shrink-0 text-xs text-faint">{note}</span>}
      <IconButton label={text.conversation.unqueue} onClick={remove}>
        <X size={15} aria-hidden />
      </IconButton>
    </li>
  )
}
