import 'katex/dist/katex.min.css'
import { render } from 'katex'
import { useLayoutEffect, useRef } from 'react'
import remarkMath from 'remark-math'
import type { FormulaProps } from '@/conversation/markdown/math'
import { text } from '@/text'
import { useScrollable } from '@/ui/scrollable'

/** The parser only accepts `$$…$$` as math, because a single dollar sign usually means money. `formulas.ts` rewrites the other forms. */
export const remark: [typeof remarkMath, object] = [remarkMath, { singleDollarTextMath: false }]

/** A formula rendered by KaTeX without trust: no links, images or styles. It is built as elements, never as markup. */
export function Formula({ source, display }: FormulaProps) {
  const box = useRef<HTMLSpanElement>(null)
  const region = useScrollable(box, text.code.formula)
  useLayoutEffect(() => {
    if (!box.current) return
    const options = {
      displayMode: display,
      trust: false,
      strict: 'ignore',
      maxExpand: 200,
      maxSize: 20,
      throwOnError: false,
    } as const
    try {
      render(source, box.current, options)
    } catch {
      box.current.textContent = source // KaTeX can't render even its error message
    }
  }, [source, display])
  if (!display) return <span ref={box} dir="ltr" />
  return <span ref={box} dir="ltr" {...region} className="block overflow-x-auto overflow-y-hidden py-1" />
}
