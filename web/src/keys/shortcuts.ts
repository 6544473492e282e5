import { useEffect, useRef } from 'react'

/** What a key does, as the help sheet shows it. */
export interface Shortcut {
  /** `Mod+K` (Ctrl, ⌘ on a Mac), `?`, `Alt+ArrowDown`, `F6` */
  keys: string
  label: string
  group: string
}

interface Bound extends Shortcut {
  act: (event: KeyboardEvent) => void
}

export const MAC = /Mac|iPhone|iPad/.test(navigator.platform)

const bound = new Set<Bound>()
const KEPT = 'moot.single-keys'

/** Whether keys without Ctrl or Alt act; people who speak or hit keys by accident turn that off. */
export function singleKeys(): boolean {
  try {
    return localStorage.getItem(KEPT) !== 'off'
  } catch {
    return true
  }
}

export function keepSingleKeys(on: boolean): void {
  try {
    localStorage.setItem(KEPT, on ? 'on' : 'off')
  } catch {
    // a browser that keeps nothing: they stay on
  }
}

/** Everything that a key does at the moment, in the order in which it came. */
export function shortcuts(): readonly Shortcut[] {
  return [...bound]
}

/** Binds a key for as long as the component is there. The last one bound wins, so a view can take a key over. */
export function useShortcut(
  keys: string,
  label: string,
  act: (event: KeyboardEvent) => void,
  group = 'Everywhere',
): void {
  const latest = useRef(act)
  latest.current = act
  useEffect(() => {
    const one: Bound = { keys, label, group, act: (event) => latest.current(event) }
    bound.add(one)
    return () => {
      bound.delete(one)
    }
  }, [keys, label, group])
}

/** Listens on the document; gives back how to stop. */
export function listen(): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing) return
    const one = [...bound].reverse().find((candidate) => matches(candidate.keys, event))
    if (!one) return
    event.preventDefault()
    one.act(event)
  }
  document.addEventListener('keydown', onKey)
  return () => document.removeEventListener('keydown', onKey)
}

/** Whether a key press is these keys; one without a modifier never is while somebody types or a dialog is open. */
export function matches(keys: string, event: KeyboardEvent): boolean {
  const parts = keys.split('+')
  const key = parts.pop() ?? ''
  const wants = (name: string) => parts.includes(name)
  const mod = MAC ? event.metaKey : event.ctrlKey
  const isLetter = key.length === 1
  if (mod !== wants('Mod') || event.altKey !== wants('Alt')) return false
  if (event.shiftKey !== wants('Shift') && !(isLetter && !wants('Mod'))) return false // `?` is Shift and something else on every keyboard
  if (event.key.toLowerCase() !== key.toLowerCase()) return false
  if (parts.length || !isLetter) return true
  return singleKeys() && !isTyping(event.target) && !document.querySelector('dialog[open]')
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

const WRITTEN: Record<string, string> = {
  Mod: MAC ? '⌘' : 'Ctrl',
  ArrowUp: '↑',
  ArrowDown: '↓',
  Escape: 'Esc',
  Delete: 'Del',
}

/** Keys as they are written on the keyboard at hand. */
export function written(keys: string): string {
  return keys
    .split('+')
    .map((key) => WRITTEN[key] ?? (key.length === 1 ? key.toUpperCase() : key))
    .join(MAC ? ' ' : '+')
}
