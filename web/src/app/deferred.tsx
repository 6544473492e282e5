import { type ReactNode, useEffect, useState } from 'react'

type View<Props> = (props: Props) => ReactNode

/**
 * Return a component whose code is loaded when it is first shown. Until then, `placeholder` is shown.
 *
 * It replaces `lazy` and `Suspense` of React, which keep a placeholder on screen for at least 300 ms.
 */
export function deferred<Props extends object>(
  load: () => Promise<{ default: View<Props> }>,
  placeholder: (props: Props) => ReactNode = () => null,
): View<Props> {
  let loaded: View<Props> | undefined
  return function Deferred(props: Props) {
    const [View, setView] = useState(() => loaded)
    const [failed, setFailed] = useState<{ error: unknown }>()
    useEffect(() => {
      if (View) return
      load().then(
        (module) => {
          loaded = module.default
          setView(() => module.default)
        },
        (error: unknown) => setFailed({ error }),
      )
    }, [View])
    if (failed) throw failed.error // `LoadBoundary` offers to reload the page
    return View ? <View {...props} /> : placeholder(props)
  }
}
