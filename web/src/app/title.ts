import { useEffect } from 'react'
import { text } from '@/text'

/** Set the document title. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · ${text.common.app}` : text.common.app
  }, [title])
}

let moved = false
addEventListener('pushState', () => {
  moved = true // the router dispatches this event for every navigation
})
addEventListener('popstate', () => {
  moved = true
})

/** Return true after the first navigation within the page. From then on, views must move the focus themselves. */
export function arriving(): boolean {
  return moved
}
