import { useEffect } from 'react'

/** Names the document after a view, as tabs, history and screen readers show it. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · moot` : 'moot'
  }, [title])
}

let views = 0

/** True for every view but the first that is shown: then the focus has to follow, and the first leaves it to the browser. */
export function arriving(): boolean {
  views += 1
  return views > 1
}
