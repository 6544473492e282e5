import { type CSSProperties, memo, type ReactNode, useMemo, useRef } from 'react'
import { defaultRemarkPlugins, Streamdown, type StreamdownProps } from 'streamdown'
import { CodeFence } from '@/conversation/markdown/CodeFence'
import { withFormulas } from '@/conversation/markdown/formulas'
import { MarkdownImage, MarkdownLink } from '@/conversation/markdown/links'
import { literalHtml } from '@/conversation/markdown/literal'
import { formula, useMath } from '@/conversation/markdown/math'
import { text } from '@/text'
import { useScrollable } from '@/ui/scrollable'

interface Inside {
  children?: ReactNode
  className?: string
  style?: CSSProperties
}

/** Return the alignment of a table's cell. Model output sets no other style. */
function alignedBy(style: CSSProperties | undefined): CSSProperties | undefined {
  return style?.textAlign ? { textAlign: style.textAlign } : undefined
}

function InlineCode({ children, className }: Inside) {
  const Formula = className?.includes('language-math') ? formula() : null
  if (Formula && typeof children === 'string')
    return <Formula source={children} display={className?.includes('math-display') ?? false} />
  return (
    <code className="rounded-md bg-sunken px-1.5 py-0.5 font-mono text-[0.875em] break-words [box-decoration-break:clone]">
      {children}
    </code>
  )
}

function TaskState({ checked }: { checked?: boolean }) {
  return <input type="checkbox" checked={checked === true} disabled aria-label={text.code.task} className="mr-2" />
}

function WideTable({ children }: Inside) {
  const box = useRef<HTMLDivElement>(null)
  const region = useScrollable(box, text.code.table)
  return (
    <div ref={box} {...region} className="my-4 overflow-x-auto rounded-xl border border-line">
      <table className="w-full border-collapse text-[0.9375em]">{children}</table>
    </div>
  )
}

const COMPONENTS = {
  pre: CodeFence,
  a: MarkdownLink,
  img: MarkdownImage,
  inlineCode: InlineCode,
  strong: ({ children }: Inside) => <strong className="font-semibold">{children}</strong>,
  input: TaskState,
  table: WideTable,
  thead: ({ children }: Inside) => <thead className="bg-sunken text-left">{children}</thead>,
  th: ({ children, style }: Inside) => (
    <th style={alignedBy(style)} className="border-b border-line px-3.5 py-2 font-semibold">
      {children}
    </th>
  ),
  td: ({ children, style }: Inside) => (
    <td style={alignedBy(style)} className="border-b border-line px-3.5 py-2 align-top [tr:last-child>&]:border-0">
      {children}
    </td>
  ),
} as unknown as StreamdownProps['components'] // the type requires every component to accept any property

const REMARK = Object.values(defaultRemarkPlugins)
const REHYPE: StreamdownProps['rehypePlugins'] = [literalHtml]

/** Model output as Markdown. HTML stays text, and external resources are never loaded without a click. */
export const Markdown = memo(function Markdown({
  content,
  streaming = false,
}: {
  content: string
  streaming?: boolean
}) {
  const rewritten = useMemo(() => withFormulas(content), [content])
  const math = useMath(rewritten)
  return (
    <Streamdown
      className="prose"
      mode="streaming" // render block by block, so that complete blocks are not parsed again
      parseIncompleteMarkdown={streaming}
      components={COMPONENTS}
      remarkPlugins={math ? [...REMARK, math.remark] : REMARK}
      rehypePlugins={REHYPE}
      controls={false}
      linkSafety={{ enabled: false }}
      dir="auto"
    >
      {math ? rewritten : content}
    </Streamdown>
  )
})

export default Markdown
