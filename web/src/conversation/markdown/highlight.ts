/** Lines of tokens: text, light color, dark color. */
export type Tokens = [string, string, string][][]

let worker: Worker | null = null
let next = 1
const waiting = new Map<number, (tokens: Tokens | null) => void>()

/** Highlight source code in a worker. Return null for unknown languages. */
export function highlight(text: string, language: string): Promise<Tokens | null> {
  worker ??= start()
  const id = next++
  worker.postMessage({ id, text, language })
  return new Promise((resolve) => waiting.set(id, resolve))
}

function start(): Worker {
  const made = new Worker(new URL('./highlight.worker.ts', import.meta.url), { type: 'module' })
  made.onmessage = ({ data }: MessageEvent<{ id: number; tokens: Tokens | null }>) => {
    waiting.get(data.id)?.(data.tokens)
    waiting.delete(data.id)
  }
  return made
}
