import { memo, type ReactNode } from 'react'
import { defaultRemarkPlugins, Streamdown, type StreamdownProps } from 'streamdown'
import { CodeFence } from '@/conversation/markdown/CodeFence'
import { MarkdownImage, MarkdownLink } from '@/conversation/markdown/links'
import { literalHtml } from '@/conversation/markdown/literal'
import { formula, useMath } from '@/conversation/markdown/math'

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
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keyboard too
    <div className="my-4 overflow-x-auto rounded-xl border border-line" tabIndex={0} role="group" aria-label="Table">
      <table className="w-full border-collapse text-[0.9375em]">{children}</table>
    </div>
  ),
  thead: ({ children }: Inside) => <thead className="bg-sunken text-left">{children}</thead>,
  th: ({ children }: Inside) => <th className="border-b border-line px-3.5 py-2 font-semibold">{children}</th>,
  td: ({ children }: Inside) => (
    <td className="border-b border-line px-3.5 py-2 align-top [tr:last-child>&]:border-0">{children}</td>
  ),
} as unknown as StreamdownProps['components'] // its type wants every component to take any property

const REMARK = Object.values(defaultRemarkPlugins)
const REHYPE: StreamdownProps['rehypePlugins'] = [literalHtml]

/** Text of a model as Markdown. No HTML in it becomes elements, and nothing that it names is fetched before somebody asks for it. */
export const Markdown = memo(function Markdown({ text, streaming = false }: { text: string; streaming?: boolean }) {
  const math = useMath(text)
  return (
    <Streamdown
      className="prose"
      mode="streaming" // block by block: a text that is whole is not read anew
      parseIncompleteMarkdown={streaming}
      components={COMPONENTS}
      remarkPlugins={math ? [...REMARK, math.remark] : REMARK}
      rehypePlugins={REHYPE}
      controls={false}
      linkSafety={{ enabled: false }}
      dir="auto"
    >
      {text}
    </Streamdown>
  )
})

export default Markdown
