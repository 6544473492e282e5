import { useEffect, useRef } from 'react'
import { text } from '@/text'

/** A keyboard shortcut as listed in the help. */
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

/** Return true if single-key shortcuts are enabled. Users of speech input can turn them off. */
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
    // storage is unavailable: they stay enabled
  }
}

/** Return the current shortcuts in registration order. */
export function shortcuts(): readonly Shortcut[] {
  return [...bound]
}

/** Register a shortcut, which may have several keys, while the component is mounted. The latest registration wins. */
export function useShortcut(
  keys: string | readonly string[],
  label: string,
  act: (event: KeyboardEvent) => void,
  group = text.keys.general,
): void {
  const latest = useRef(act)
  latest.current = act
  const all = typeof keys === 'string' ? keys : keys.join(' ')
  useEffect(() => {
    const added = all
      .split(' ')
      .filter(Boolean)
      .map((one): Bound => ({ keys: one, label, group, act: (event) => latest.current(event) }))
    for (const one of added) bound.add(one)
    return () => {
      for (const one of added) bound.delete(one)
    }
  }, [all, label, group])
}

/** Handle shortcuts on the document. Return a function that stops. */
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

/**
 * Return true if the event matches the keys. Single-key shortcuts, except `F6`, never match while typing or in a dialog, unless they are
 * keys of the input itself (`inInput`).
 */
export function matches(keys: string, event: KeyboardEvent, inInput = false): boolean {
  const parts = keys.split('+')
  const key = parts.pop() ?? ''
  const wants = (name: string) => parts.includes(name)
  const mod = MAC ? event.metaKey : event.ctrlKey
  const isLetter = key.length === 1
  if (mod !== wants('Mod') || event.altKey !== wants('Alt')) return false
  if (event.shiftKey !== wants('Shift') && !(isLetter && !wants('Mod'))) return false // `?` is Shift plus a different key on every keyboard layout
  if (event.key.toLowerCase() !== key.toLowerCase()) return false
  if (parts.length || inInput || /^F\d/.test(key)) return true
  if (SCROLLING.has(key) && !scrollsMessages(event.target)) return false
  return (!isLetter || singleKeys()) && !isTyping(event.target) && !document.querySelector('dialog[open]')
}

const SCROLLING = new Set(['Home', 'End'])

/** Return true if keys that scroll would scroll the messages, and not a smaller region or another list. */
function scrollsMessages(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement) || target === document.body) return true
  return target.closest('[role=group], [role=log], nav, aside')?.getAttribute('role') === 'log'
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

const WRITTEN: Record<string, string> = {
  Mod: MAC ? '⌘' : text.keys.names.control,
  ArrowUp: '↑',
  ArrowDown: '↓',
  Escape: text.keys.names.escape,
  Delete: text.keys.names.delete,
}

/** Format keys for the current platform. */
export function written(keys: string): string {
  return keys
    .split('+')
    .map((key) => WRITTEN[key] ?? (key.length === 1 ? key.toUpperCase() : key))
    .join(MAC ? ' ' : '+')
}
