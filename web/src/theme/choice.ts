/** How the page looks: what was chosen, where it is kept, how it is put on the document. */

export const THEMES = ['system', 'light', 'dark', 'contrast'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'moot.theme'

/** The choice of this browser; `system` where none was made or it can't be read. */
export function chosen(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === kept) ?? 'system'
  } catch {
    return 'system' // a browser that keeps nothing
  }
}

/** Puts a choice on the document and keeps it. */
export function choose(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // a browser that keeps nothing: it holds for this tab
  }
  put(theme)
}

/** Puts a choice on the document: `contrast`, and `system` for one who asks the system for contrast, take light or dark from the system. */
export function put(theme: Theme): void {
  const root = document.documentElement
  const contrast = theme === 'contrast' || (theme === 'system' && matchMedia('(prefers-contrast: more)').matches)
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme
  else delete root.dataset.theme
  if (contrast) root.dataset.contrast = 'more'
  else delete root.dataset.contrast
}
