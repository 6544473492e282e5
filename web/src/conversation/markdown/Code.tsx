import { clsx } from 'clsx'
import { type CSSProperties, memo, useEffect, useRef, useState } from 'react'
import { highlight, type Tokens } from '@/conversation/markdown/highlight'
import { text as strings } from '@/text'
import { useScrollable } from '@/ui/scrollable'

interface Props {
  text: string
  language: string
  /** The accessible name of the code while it is a scrollable region. */
  label?: string
  wrapped?: boolean
  /** False while the text is streaming. Highlighting waits until it is complete. */
  settled?: boolean
  className?: string
}

/** Source code, highlighted once it is complete and near the viewport. */
export const Code = memo(function Code({
  text,
  language,
  label = strings.code.code,
  wrapped = false,
  settled = true,
  className,
}: Props) {
  const box = useRef<HTMLPreElement>(null)
  const tokens = useTokens(box, text, settled ? language : '')
  const region = useScrollable(box, label)
  return (
    <pre
      ref={box}
      {...region}
      dir="ltr"
      className={clsx(
        'max-h-128 overflow-auto px-3.5 py-3 font-mono text-[0.8125rem] leading-relaxed',
        wrapped && 'break-words whitespace-pre-wrap',
        className,
      )}
    >
      <code>{tokens ? <Coloured tokens={tokens} /> : text}</code>
    </pre>
  )
})

function Coloured({ tokens }: { tokens: Tokens }) {
  return tokens.map((line, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: lines and tokens have no id
    <span key={at}>
      {line.map(([content, light, dark], index) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: as above
          key={index}
          className="token"
          style={light ? ({ '--light': light, '--dark': dark } as CSSProperties) : undefined}
        >
          {content}
        </span>
      ))}
      {at < tokens.length - 1 && '\n'}
    </span>
  ))
}

function useTokens(box: React.RefObject<HTMLElement | null>, text: string, language: string): Tokens | null {
  const [found, setFound] = useState<{ text: string; tokens: Tokens } | null>(null)
  useEffect(() => {
    const element = box.current
    if (!element || !language || text.length > 60_000) return
    let here = true
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return
        observer.disconnect()
        void highlight(text, language).then((tokens) => here && tokens && setFound({ text, tokens }))
      },
      { rootMargin: '400px' },
    )
    observer.observe(element)
    return () => {
      here = false
      observer.disconnect()
    }
  }, [box, text, language])
  return found && found.text === text ? found.tokens : null
}
