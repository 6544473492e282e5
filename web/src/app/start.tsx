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
  if (import.meta.env.PROD) keepShell()
}

/** Install the worker that opens the page while the server can't be reached. Browsers have workers only for secure addresses. */
function keepShell(): void {
  const install = () => void navigator.serviceWorker?.register('/worker.js').catch(() => {}) // the page works without it
  if (document.readyState === 'complete') install()
  else addEventListener('load', install, { once: true })
}
