import { useSession } from '@/app/session'
import { matches } from '@/keys/shortcuts'

/** Default keys of the actions that `keys` in the configuration sets for the terminal and for the page. */
const DEFAULTS = { new: ['N'], conversations: ['Mod+K', '/'], enter: ['Enter'], stop: ['Escape'] } as const

/** An action with configurable keys. */
export type Action = keyof typeof DEFAULTS

const NAMES: Record<string, string> = {
  ctrl: 'Mod',
  alt: 'Alt',
  shift: 'Shift',
  esc: 'Escape',
  del: 'Delete',
  pageup: 'PageUp',
  pagedown: 'PageDown',
  up: 'ArrowUp',
  down: 'ArrowDown',
  left: 'ArrowLeft',
  right: 'ArrowRight',
  space: ' ',
}

/** Return keys as the page names them, or null for two keys in sequence, which only the terminal has. */
export function pageKeys(chord: string): string | null {
  if (chord.trim().includes(' ')) return null
  return chord
    .trim()
    .toLowerCase()
    .split('+')
    .map(
      (key) => NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : `${key.charAt(0).toUpperCase()}${key.slice(1)}`),
    )
    .join('+')
}

/** Return the keys of an action. If the configuration names only keys that the page doesn't have, the default ones stay. */
export function useActionKeys(action: Action): readonly string[] {
  const configured = useSession().data?.keys[action]
  if (!configured) return DEFAULTS[action]
  const own = configured.flatMap((chord) => pageKeys(chord) ?? [])
  return own.length || !configured.length ? own : DEFAULTS[action]
}

/** Return true if the event is one of the keys. Enter means Enter without Shift, which adds a line. */
export function isOneOf(keys: readonly string[], event: KeyboardEvent): boolean {
  return keys.some((one) => matches(one, event, true))
}
