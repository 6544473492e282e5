import { useEffect } from 'react'
import { text } from '@/text'

let current = { title: '', waiting: 0 }

function put(change: Partial<typeof current>): void {
  current = { ...current, ...change }
  const { title, waiting } = current
  document.title = `${waiting ? `(${waiting}) ` : ''}${title ? `${title} · ` : ''}${text.common.app}`
}

/** Set the document title. */
export function useTitle(title: string): void {
  useEffect(() => put({ title }), [title])
}

/** Show the number of requests that wait for the user in front of the document title. */
export function useTitleCount(waiting: number): void {
  useEffect(() => put({ waiting }), [waiting])
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
