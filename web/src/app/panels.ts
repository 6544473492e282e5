import { useSyncExternalStore } from 'react'

/** The overlay that is open. At most one is open at a time. */
export type Panel = 'palette' | 'help' | 'drawer'

interface Panels {
  shown: Panel | null
  /** True if the sidebar is visible. Phones show it as a drawer instead. */
  sidebar: boolean
}

const KEPT = 'moot.sidebar'

function stored(): boolean {
  try {
    return localStorage.getItem(KEPT) !== 'hidden'
  } catch {
    return true
  }
}

let panels: Panels = { shown: null, sidebar: stored() }
const listeners = new Set<() => void>()

function set(change: Partial<Panels>): void {
  panels = { ...panels, ...change }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function open(panel: Panel | null): void {
  if (panel !== panels.shown) set({ shown: panel })
}

export function toggleSidebar(): void {
  set({ sidebar: !panels.sidebar })
  try {
    localStorage.setItem(KEPT, panels.sidebar ? 'shown' : 'hidden')
  } catch {
    // storage is unavailable: keep the setting for this tab only
  }
}

export function usePanels(): Panels & { open: typeof open; toggleSidebar: typeof toggleSidebar } {
  return { ...useSyncExternalStore(subscribe, () => panels), open, toggleSidebar }
}
