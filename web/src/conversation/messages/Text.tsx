import { lazy, Suspense } from 'react'

const loading = () => import('@/conversation/markdown/Markdown')
const Markdown = lazy(loading)

/** Preload the Markdown renderer. */
export function prepareText(): void {
  void loading()
}

/** Model output. Plain text until the Markdown renderer is loaded. */
export function Text({ text, streaming }: { text: string; streaming: boolean }) {
  return (
    <Suspense fallback={<div className="prose whitespace-pre-wrap">{text}</div>}>
      <Markdown content={text} streaming={streaming} />
    </Suspense>
  )
}
