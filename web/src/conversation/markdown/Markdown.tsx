import { memo, type ReactNode } from 'react'
import { defaultRemarkPlugins, Streamdown, type StreamdownProps } from 'streamdown'
import { CodeFence } from '@/conversation/markdown/CodeFence'
import { MarkdownImage, MarkdownLink } from '@/conversation/markdown/links'
import { literalHtml } from '@/conversation/markdown/literal'
import { formula, useMath } from '@/conversation/markdown/math'
import { text } from '@/text'

interface Inside {
  children?: ReactNode
  className?: string
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

const COMPONENTS = {
  pre: CodeFence,
  a: MarkdownLink,
  img: MarkdownImage,
  inlineCode: InlineCode,
  strong: ({ children }: Inside) => <strong className="font-semibold">{children}</strong>,
  table: ({ children }: Inside) => (
    <div
      className="my-4 overflow-x-auto rounded-xl border border-line"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table can be scrolled with the keyboard
      tabIndex={0}
      role="group"
      aria-label={text.code.table}
    >
      <table className="w-full border-collapse text-[0.9375em]">{children}</table>
    </div>
  ),
  thead: ({ children }: Inside) => <thead className="bg-sunken text-left">{children}</thead>,
  th: ({ children }: Inside) => <th className="border-b border-line px-3.5 py-2 font-semibold">{children}</th>,
  td: ({ children }: Inside) => (
    <td className="border-b border-line px-3.5 py-2 align-top [tr:last-child>&]:border-0">{children}</td>
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
  const math = useMath(content)
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
      {content}
    </Streamdown>
  )
})

export default Markdown
