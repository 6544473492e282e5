import { Check, Code2, Copy, Download, Eye } from 'lucide-react'
import { useRef, useState } from 'react'
import { deferred } from '@/app/deferred'
import { NumberedCode } from '@/conversation/markdown/NumberedCode'
import { Text } from '@/conversation/messages/Text'
import { fileNameOf } from '@/conversation/panel/fileName'
import { Toggle } from '@/conversation/panel/Toggle'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { useCopy } from '@/ui/copy'
import { useScrollable } from '@/ui/scrollable'

const Frame = deferred(() => import('@/conversation/markdown/Frame'))
const FRAMED = new Set(['html', 'svg', 'mermaid'])
const VIEWS = [
  { value: 'preview', label: text.code.preview, icon: <Eye size={15} aria-hidden /> },
  { value: 'code', label: text.code.code, icon: <Code2 size={15} aria-hidden /> },
] as const
const PROSE = new Set(['markdown', 'md'])

/** A code block with line numbers. HTML, SVG, Mermaid and Markdown are rendered, with a switch to the code. */
export function CodePanel({ source, language }: { source: string; language: string }) {
  const showable = FRAMED.has(language) || PROSE.has(language)
  const [rendered, setRendered] = useState(showable)
  const { copied, copy } = useCopy()
  return (
    <>
      <div className="flex min-h-11 flex-wrap items-center gap-1 border-b border-line px-3">
        {showable && (
          <Toggle
            label={text.panel.view}
            choices={VIEWS}
            chosen={rendered ? 'preview' : 'code'}
            choose={(view) => setRendered(view === 'preview')}
          />
        )}
        <span className="ml-auto flex">
          <IconButton label={copied ? text.common.copied : text.code.copy} onClick={() => copy(source)}>
            {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
          </IconButton>
          <IconButton label={text.common.download} onClick={() => download(source, fileNameOf(language))}>
            <Download size={15} aria-hidden />
          </IconButton>
        </span>
      </div>
      {!rendered ? (
        <Source source={source} language={language} />
      ) : PROSE.has(language) ? (
        <div className="min-h-0 grow overflow-y-auto p-5">
          <Text text={source} streaming={false} />
        </div>
      ) : (
        <Frame kind={language as 'html' | 'svg' | 'mermaid'} source={source} />
      )}
    </>
  )
}

function Source({ source, language }: { source: string; language: string }) {
  const box = useRef<HTMLDivElement>(null)
  const region = useScrollable(box, text.code.code)
  return (
    <div ref={box} {...region} dir="ltr" className="min-h-0 grow overflow-auto focus-visible:outline-offset-[-2px]">
      <NumberedCode text={source} language={language} label={text.code.code} />
    </div>
  )
}

/** Save a text as a file. */
function download(source: string, name: string): void {
  const url = URL.createObjectURL(new Blob([source], { type: 'text/plain;charset=utf-8' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
