import { useAui, useAuiState } from '@assistant-ui/react'
import { useEffect, useRef } from 'react'

const KEY = 'moot.draft.'

/** Store the unsent draft in this browser, and restore it when the composer opens. */
export function useDraft(id: string): void {
  const aui = useAui()
  const text = useAuiState((state) => state.composer.text)
  const restored = useRef(false)
  useEffect(() => {
    if (restored.current) return
    restored.current = true
    const stored = read(id)
    if (stored && !aui.composer.getState().text) aui.composer.setText(stored)
  }, [aui, id])
  useEffect(() => {
    const timer = setTimeout(() => restored.current && write(id, text), 250)
    return () => clearTimeout(timer)
  }, [id, text])
}

function read(id: string): string {
  try {
    return localStorage.getItem(KEY + id) ?? ''
  } catch {
    return '' // storage is unavailable
  }
}

function write(id: string, text: string): void {
  try {
    if (text) localStorage.setItem(KEY + id, text)
    else localStorage.removeItem(KEY + id)
  } catch {
    // storage is unavailable or full
  }
}
