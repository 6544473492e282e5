/** Store the selected theme and apply it to the document. */

export const THEMES = ['system', 'light', 'dark', 'contrast'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'moot.theme'

/** Return the theme of this browser, `system` by default. */
export function chosen(): Theme {
  try {
    const stored = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === stored) ?? 'system'
  } catch {
    return 'system' // storage is unavailable
  }
}

/** Apply and store a theme. */
export function choose(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // storage is unavailable: the theme applies to this tab only
  }
  put(theme)
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
