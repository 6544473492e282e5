import type { Element } from 'hast'
import { Check, Copy, Eye, EyeOff, PanelRight, WrapText } from 'lucide-react'
import { useState } from 'react'
import { useIsCodeFenceIncomplete } from 'streamdown'
import { deferred } from '@/app/deferred'
import { Code } from '@/conversation/markdown/Code'
import { formula } from '@/conversation/markdown/math'
import { openPanel } from '@/conversation/panel/content'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { useCopy } from '@/ui/copy'

const Frame = deferred(
  () => import('@/conversation/markdown/Frame'),
  ({ initial }) => <div style={{ height: initial }} />,
)

/** Labels for languages that can be rendered. */
const SHOWABLE = text.code.show

/** Initial heights of rendered content in px, chosen to avoid layout shifts. */
const HEIGHTS: Record<string, number> = { html: 360, svg: 200, mermaid: 200 }

/** A code block with language, copy and wrap buttons, and a sandboxed preview for HTML, SVG and Mermaid. */
export function CodeFence({ node }: { node?: Element }) {
  const incomplete = useIsCodeFenceIncomplete()
  const { source, language } = contents(node)
  const [wrapped, setWrapped] = useState(false)
  const [framed, setFramed] = useState(false)
  const { copied, copy } = useCopy()
  const Formula = language === 'math' && !incomplete ? formula() : null
  if (Formula) return <Formula source={source} display />
  const showable = incomplete ? undefined : SHOWABLE[language]
  return (
    <figure className="group/code my-4 overflow-hidden rounded-xl border border-line bg-sunken">
      <figcaption className="flex min-h-9 items-center justify-between gap-2 border-b border-line pr-1 pl-3.5 text-xs text-muted">
        <span className="font-mono">{language || text.code.text}</span>
        <span className="flex">
          {showable && (
            <IconButton
              label={framed ? text.code.showSource : showable}
              aria-pressed={framed}
              onClick={() => setFramed(!framed)}
            >
              {framed ? <EyeOff size={15} aria-hidden /> : <Eye size={15} aria-hidden />}
            </IconButton>
          )}
          {!incomplete && source && (
            <IconButton
              label={text.panel.open}
              aria-haspopup="dialog"
              onClick={() => openPanel({ kind: 'code', source, language })}
            >
              <PanelRight size={15} aria-hidden />
            </IconButton>
          )}
          <IconButton label={text.code.wrap} aria-pressed={wrapped} onClick={() => setWrapped(!wrapped)}>
            <WrapText size={15} aria-hidden />
          </IconButton>
          <IconButton label={copied ? text.common.copied : text.code.copy} onClick={() => copy(source)}>
            {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
          </IconButton>
        </span>
      </figcaption>
      {framed && showable ? (
        <Frame kind={language as 'html' | 'svg' | 'mermaid'} source={source} initial={HEIGHTS[language] ?? 200} />
      ) : (
        <Code text={source} language={language} wrapped={wrapped} settled={!incomplete} />
      )}
    </figure>
  )
}

function contents(node: Element | undefined): { source: string; language: string } {
  const code = node?.children.find((child): child is Element => child.type === 'element' && child.tagName === 'code')
  const source = code?.children.map((child) => (child.type === 'text' ? child.value : '')).join('') ?? ''
  const classes = code?.properties.className
  const named = (Array.isArray(classes) ? classes : [classes]).find((name) => String(name).startsWith('language-'))
  return {
    source: source.replace(/\n$/, ''),
    language: String(named ?? '')
      .slice('language-'.length)
      .toLowerCase(),
  }
}
