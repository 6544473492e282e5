import type { Conversation } from '@/api/types'
import { dayOf } from '@/ui/words'

export type Row = { kind: 'day'; key: string; text: string } | { kind: 'one'; key: string; conversation: Conversation }

/** Conversations as rows of a list, newest first, each day under its heading. */
export function rowsOf(conversations: readonly Conversation[], now: number = Date.now()): Row[] {
  const rows: Row[] = []
  let day = ''
  for (const conversation of conversations) {
    const text = dayOf(conversation.updated_at, now)
    if (text !== day) rows.push({ kind: 'day', key: `day ${text}`, text })
    day = text
    rows.push({ kind: 'one', key: conversation.id, conversation })
  }
  return rows
}

/** A conversation's title as it is shown; one without any is named so. */
export function titleOf(conversation: Pick<Conversation, 'title'>): string {
  return conversation.title || 'Untitled'
}
