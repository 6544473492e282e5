import { deferred } from '@/app/deferred'

const load = () => import('@/conversation/markdown/Markdown')
const Markdown = deferred(load, ({ content }) => <div className="prose whitespace-pre-wrap">{content}</div>)

/** Preload the Markdown renderer. */
export function prepareText(): void {
  void load()
}

/** Model output. Plain text until the Markdown renderer is loaded. */
export function Text({ text, streaming }: { text: string; streaming: boolean }) {
  return <Markdown content={text} streaming={streaming} />
}
