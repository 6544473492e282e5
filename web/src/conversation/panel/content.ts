import { useSyncExternalStore } from 'react'
import type { Message } from '@/api/types'
import type { Session } from '@/conversation/session'

/** What the side panel shows. */
export type PanelContent =
  | { kind: 'code'; source: string; language: string }
  /** The files changed by the run that wrote the message. */
  | { kind: 'changes'; conversation: string; message: string }
  /** Another model's answer next to this one. */
  | { kind: 'another'; session: Session; message: Message }

export interface Panel {
  content: PanelContent
  /** A counter, because the same content may be opened twice. */
  turn: number
}

let panel: Panel | null = null
let turns = 0
const listeners = new Set<() => void>()

function set(next: Panel | null): void {
  panel = next
  for (const listener of listeners) listener()
}

/** Open the side panel, in place of one that is open. */
export function openPanel(content: PanelContent): void {
  turns += 1
  set({ content, turn: turns })
}

export function closePanel(): void {
  if (panel) set(null)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function usePanel(): Panel | null {
  return useSyncExternalStore(subscribe, () => panel)
}
