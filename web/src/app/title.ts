import { useEffect } from 'react'

/** Names the document after a view, as tabs, history and screen readers show it. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · moot` : 'moot'
  }, [title])
}

let moved = false
addEventListener('pushState', () => {
  moved = true // the router tells of every move
})
addEventListener('popstate', () => {
  moved = true
})

/** Whether somebody came to a view from another one: then the focus has to follow. The first view leaves it to the browser. */
export function arriving(): boolean {
  return moved
}
