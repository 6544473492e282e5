/** Store the selected theme and apply it to the document. */

export const THEMES = ['system', 'light', 'dark', 'contrast'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'moot.theme'

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === kept) ?? 'system'
  } catch {
    return 'system' // storage is unavailable
  }
}

let theme = stored()
const listeners = new Set<() => void>()

/** Return the theme of this browser, `system` by default. */
export function chosen(): Theme {
  return theme
}

/** Call the listener after each change of the theme. Return a function that removes the listener. */
export function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Apply and store a theme. */
export function choose(next: Theme): void {
  theme = next
  try {
    localStorage.setItem(KEY, next)
  } catch {
    // storage is unavailable: the theme applies to this tab only
  }
  put(next)
  for (const listener of listeners) listener()
}

/** Apply a theme to the document. `contrast` uses the system's light or dark colors; `system` respects the system's contrast setting. */
export function put(theme: Theme): void {
  const root = document.documentElement
  const contrast = theme === 'contrast' || (theme === 'system' && matchMedia('(prefers-contrast: more)').matches)
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme
  else delete root.dataset.theme
  if (contrast) root.dataset.contrast = 'more'
  else delete root.dataset.contrast
}
