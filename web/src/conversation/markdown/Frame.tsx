import { clsx } from 'clsx'
import mermaid from 'mermaid/dist/mermaid.min.js?url'
import { useEffect, useRef, useState } from 'react'
import { text } from '@/text'
import { whenReleased } from '@/ui/pressing'

interface Props {
  kind: 'html' | 'svg' | 'mermaid'
  source: string
  /** The height in px until the content reports its own. Without it, the frame fills its container. */
  initial?: number
}

/**
 * Render untrusted content in a sandboxed frame with its own origin: no cookies, no requests and no access to the page. The frame's
 * Content-Security-Policy enforces the same limits.
 */
export default function Frame({ kind, source, initial }: Props) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [loads, setLoads] = useState(0)

  useEffect(() => {
    if (initial === undefined) return
    let forget = () => {}
    const onMessage = ({ source: from, data }: MessageEvent<{ height?: unknown }>) => {
      if (from !== frame.current?.contentWindow || typeof data?.height !== 'number') return
      const height = Math.max(80, Math.min(800, Math.ceil(data.height)))
      forget()
      forget = whenReleased(() => {
        if (frame.current) frame.current.style.height = `${height}px` // set directly: a state update could render during a click
      })
    }
    addEventListener('message', onMessage)
    return () => {
      removeEventListener('message', onMessage)
      forget()
    }
  }, [initial])

  useEffect(() => {
    if (loads !== 1) return // never send content to a frame that has navigated away
    const program = kind === 'mermaid' ? fetch(mermaid).then((response) => response.text()) : Promise.resolve('')
    const dark = matchMedia('(prefers-color-scheme: dark)').matches
    void program.then((code) => frame.current?.contentWindow?.postMessage({ kind, source, program: code, dark }, '*'))
  }, [loads, kind, source])

  return (
    <iframe
      ref={frame}
      src="/frames/frame.html"
      sandbox="allow-scripts"
      referrerPolicy="no-referrer"
      title={kind === 'mermaid' ? text.code.diagram : text.code.preview}
      onLoad={() => setLoads((count) => count + 1)}
      style={{ height: initial }}
      className={clsx('block w-full bg-white', initial === undefined && 'min-h-0 grow')}
    />
  )
}
