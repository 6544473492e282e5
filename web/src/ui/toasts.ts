/** Short notifications, optionally with an action such as undo. */

export interface Toast {
  id: number
  text: string
  danger: boolean
  action?: { label: string; act: () => void }
}

let shown: readonly Toast[] = []
let next = 1
const listeners = new Set<() => void>()

function set(value: readonly Toast[]): void {
  shown = value
  for (const listener of listeners) listener()
}

/** Show a notification and return its id. At most three are visible at once. */
export function notify(text: string, more: Partial<Pick<Toast, 'action' | 'danger'>> = {}): number {
  const toast = { id: next++, text, danger: false, ...more }
  set([...shown, toast].slice(-3))
  return toast.id
}

/** Show an error's message as a notification. */
export function notifyError(error: unknown): number {
  return notify(error instanceof Error ? error.message : String(error), { danger: true })
}

export function dismiss(id: number): void {
  set(shown.filter((toast) => toast.id !== id))
}

export const toasts = {
  subscribe(listener: () => void): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
  get: (): readonly Toast[] => shown,
}
