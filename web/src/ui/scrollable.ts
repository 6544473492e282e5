import { type RefObject, useEffect, useState } from 'react'

interface Region {
  tabIndex?: 0
  role?: 'group'
  'aria-label'?: string
}

/** Return attributes that make a scrollable element a labeled group in the tab order. Return none while its content fits. */
export function useScrollable(box: RefObject<HTMLElement | null>, label: string): Region {
  const [scrolls, setScrolls] = useState(false)
  // No dependencies: every render can change the content, and a new observer reports after layout
  useEffect(() => {
    const element = box.current
    if (!element) return
    const observer = new ResizeObserver(() => {
      const tall = getComputedStyle(element).overflowY !== 'hidden' && element.scrollHeight > element.clientHeight
      setScrolls(tall || element.scrollWidth > element.clientWidth)
    })
    observer.observe(element)
    for (const child of element.children) observer.observe(child)
    return () => observer.disconnect()
  })
  return scrolls ? { tabIndex: 0, role: 'group', 'aria-label': label } : {}
}
