import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from '@/app/App'
import { signInFromAddress } from '@/app/session'
import { chosen, put } from '@/theme/choice'

/** Render the page. */
export async function start(): Promise<void> {
  put(chosen())
  await signInFromAddress()
  const root = document.getElementById('root')
  if (!root) throw new Error('index.html has no element #root')
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
}
