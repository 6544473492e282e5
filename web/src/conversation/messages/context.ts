import { createContext, useContext } from 'react'
import type { Message, Node } from '@/api/types'
import type { Session } from '@/conversation/session'

/** The context shared by all messages of a conversation. */
export interface Around {
  session: Session
  /** True if the conversation exists on the server. */
  exists: boolean
  /** The id of the message that is streaming, or null. */
  live: string | null
  /** True during a replay. Messages then have no actions. */
  replaying: boolean
  nodes: readonly Node[]
  find: (id: string) => Message | undefined
  showRaw: (message: Message) => void
  showUndo: (prompt: Message) => void
}

const Context = createContext<Around | null>(null)

export const AroundProvider = Context.Provider

export function useAround(): Around {
  const around = useContext(Context)
  if (!around) throw new Error('useAround must be used inside AroundProvider')
  return around
}
