import { X } from 'lucide-react'
import { type ReactNode, useEffect, useId, useRef, useSyncExternalStore } from 'react'
import { AnotherModel } from '@/conversation/panel/AnotherModel'
import { ChangesPanel } from '@/conversation/panel/ChangesPanel'
import { CodePanel } from '@/conversation/panel/CodePanel'
import { closePanel, type Panel, type PanelContent } from '@/conversation/panel/content'
import { useShortcut } from '@/keys/shortcuts'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'

/** Below this width, the panel covers the page. */
const WIDE = '(min-width: 64rem)'

/** A panel next to the conversation; on small screens, a sheet above it. Escape closes it and returns the focus. */
export default function SidePanel({ panel: { content, turn } }: { panel: Panel }) {
  const wide = useSyncExternalStore(onWidth, () => matchMedia(WIDE).matches)
  const title = titleOf(content)
  const body = <Content content={content} />
  if (wide)
    return (
      <Aside key={turn} title={title}>
        {body}
      </Aside>
    )
  return (
    <Dialog
      key={turn}
      title={title}
      onClose={closePanel}
      className="m-0! h-dvh max-h-dvh! w-screen! max-w-none! rounded-none! border-0! bg-surface! [&>div]:h-full"
    >
      {body}
    </Dialog>
  )
}

function onWidth(changed: () => void): () => void {
  const width = matchMedia(WIDE)
  width.addEventListener('change', changed)
  return () => width.removeEventListener('change', changed)
}

function titleOf(content: PanelContent): string {
  if (content.kind === 'code') return content.language || text.code.code
  return content.kind === 'changes' ? text.changes.title : text.another.title
}

function Content({ content }: { content: PanelContent }) {
  if (content.kind === 'code') return <CodePanel source={content.source} language={content.language} />
  if (content.kind === 'another') return <AnotherModel session={content.session} message={content.message} />
  return <ChangesPanel conversation={content.conversation} message={content.message} />
}

function Aside({ title, children }: { title: string; children: ReactNode }) {
  const box = useRef<HTMLElement>(null)
  const id = useId()
  useShortcut('Escape', text.panel.close, closePanel, text.keys.conversations)
  useEffect(() => {
    const before = document.activeElement
    box.current?.focus()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
      else document.querySelector<HTMLElement>('[role=log]')?.focus({ preventScroll: true })
    }
  }, [])
  return (
    <aside
      ref={box}
      tabIndex={-1}
      aria-labelledby={id}
      className="flex w-1/2 max-w-3xl shrink-0 flex-col border-l border-line bg-surface outline-none"
    >
      <div className="flex min-h-12 items-center justify-between gap-4 border-b border-line pr-3 pl-4">
        <h2 id={id} className="min-w-0 truncate text-sm font-semibold">
          {title}
        </h2>
        <IconButton label={text.panel.close} onClick={closePanel}>
          <X size={18} aria-hidden />
        </IconButton>
      </div>
      {children}
    </aside>
  )
}
