import type { Element } from 'hast'
import { Check, Copy, Eye, EyeOff, WrapText } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { useIsCodeFenceIncomplete } from 'streamdown'
import { Code } from '@/conversation/markdown/Code'
import { formula } from '@/conversation/markdown/math'
import { IconButton } from '@/ui/Button'
import { useCopy } from '@/ui/copy'

const Frame = lazy(() => import('@/conversation/markdown/Frame'))

/** Languages that can be shown as what they describe, and how the button says it. */
const SHOWABLE: Record<string, string> = { html: 'preview', svg: 'picture', mermaid: 'diagram' }

/** px of a look before it has said its own height: what stands below it moves as little as can be. */
const HEIGHTS: Record<string, number> = { html: 360, svg: 200, mermaid: 200 }

/** A fenced block: its language, copy, wrap, and for what describes a page or a drawing a look at it in a closed-off frame. */
export function CodeFence({ node }: { node?: Element }) {
  const incomplete = useIsCodeFenceIncomplete()
  const { text, language } = contents(node)
  const [wrapped, setWrapped] = useState(false)
  const [framed, setFramed] = useState(false)
  const { copied, copy } = useCopy()
  const Formula = language === 'math' && !incomplete ? formula() : null
  if (Formula) return <Formula source={text} display />
  const showable = incomplete ? undefined : SHOWABLE[language]
  return (
    <figure className="group/code my-4 overflow-hidden rounded-xl border border-line bg-sunken">
      <figcaption className="flex min-h-9 items-center justify-between gap-2 border-b border-line pr-1 pl-3.5 text-xs text-muted">
        <span className="font-mono">{language || 'text'}</span>
        <span className="flex">
          {showable && (
            <IconButton
              label={framed ? 'Show the source' : `Show the ${showable}`}
              aria-pressed={framed}
              onClick={() => setFramed(!framed)}
            >
              {framed ? <EyeOff size={15} aria-hidden /> : <Eye size={15} aria-hidden />}
            </IconButton>
          )}
          <IconButton label="Wrap long lines" aria-pressed={wrapped} onClick={() => setWrapped(!wrapped)}>
            <WrapText size={15} aria-hidden />
          </IconButton>
          <IconButton label={copied ? 'Copied' : 'Copy code'} onClick={() => copy(text)}>
            {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
          </IconButton>
        </span>
      </figcaption>
      {framed && showable ? (
        <Suspense fallback={<div style={{ height: HEIGHTS[language] }} />}>
          <Frame kind={language as 'html' | 'svg' | 'mermaid'} source={text} initial={HEIGHTS[language] ?? 200} />
        </Suspense>
      ) : (
        <Code text={text} language={language} wrapped={wrapped} settled={!incomplete} />
      )}
    </figure>
  )
}

function contents(node: Element | undefined): { text: string; language: string } {
  const code = node?.children.find((child): child is Element => child.type === 'element' && child.tagName === 'code')
  const text = code?.children.map((child) => (child.type === 'text' ? child.value : '')).join('') ?? ''
  const classes = code?.properties.className
  const named = (Array.isArray(classes) ? classes : [classes]).find((name) => String(name).startsWith('language-'))
  return {
    text: text.replace(/\n$/, ''),
    language: String(named ?? '')
      .slice('language-'.length)
      .toLowerCase(),
  }
}
