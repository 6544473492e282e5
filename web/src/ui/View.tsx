import { type ReactNode, useEffect, useRef } from 'react'
import { arriving, useTitle } from '@/app/title'

interface Props {
  title: string
  /** One or two sentences below the title. */
  about?: ReactNode
  actions?: ReactNode
  /** Navigation at the side on wide screens, or at the top on narrow ones. */
  navigation?: ReactNode
  children: ReactNode
}

/** A page with a heading. It sets the document title and takes focus after navigation. */
export function View({ title, about, actions, navigation, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(title)
  useEffect(() => {
    if (arriving()) heading.current?.focus({ preventScroll: true })
  }, [])
  return (
    <main className="min-h-0 grow overflow-y-auto">
      <div className="mx-auto flex w-full max-w-6xl flex-col xl:flex-row xl:gap-10 xl:px-8 xl:pt-9">
        {navigation}
        <div className="min-w-0 grow px-4 pt-5 pb-16 sm:px-8 xl:px-0 xl:pt-0">
          <div className="mb-6 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
            <div className="min-w-0">
              <h1 ref={heading} tabIndex={-1} className="text-2xl font-semibold tracking-tight outline-none">
                {title}
              </h1>
              {about && <p className="mt-1.5 max-w-prose text-sm text-muted">{about}</p>}
            </div>
            {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
          </div>
          {children}
        </div>
      </div>
    </main>
  )
}
