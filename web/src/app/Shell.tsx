import type { ReactNode } from 'react'

/** What stands around every view. */
export function Shell({ children }: { children: ReactNode }) {
  return <div className="flex h-dvh flex-col">{children}</div>
}
