import { lazy, Suspense } from 'react'

const loading = () => import('@/conversation/markdown/Markdown')
const Markdown = lazy(loading)

/** Has what draws Markdown on its way before the first text is there. */
export function prepareText(): void {
  void loading()
}

/** Text of a model; bare for the moment until what draws Markdown has come. */
export function Text({ text, streaming }: { text: string; streaming: boolean }) {
  return (
    <Suspense fallback={<div className="prose whitespace-pre-wrap">{text}</div>}>
      <Markdown text={text} streaming={streaming} />
    </Suspense>
  )
}
