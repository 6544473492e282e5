import { Download } from 'lucide-react'
import type { Excerpt, Json } from '@/api/types'
import { Code } from '@/conversation/markdown/Code'
import { plain } from '@/conversation/tools/ansi'
import { text } from '@/text'

const isObject = (value: Json | undefined): value is Record<string, Json> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isExcerpt = (value: Json | undefined): boolean =>
  isObject(value) && value.type === 'excerpt' && typeof value.size === 'number'

/** A tool's output: text, JSON or images. Large outputs show both ends and a download link. */
export function Output({ value, language = '' }: { value: Json | undefined; language?: string }) {
  if (value === undefined || value === null || value === '')
    return <p className="px-3.5 py-3 text-sm text-faint">{text.tools.noOutput}</p>
  if (isExcerpt(value)) return <Large excerpt={value as unknown as Excerpt} />
  if (typeof value === 'string')
    return <Code text={plain(value)} language={language} label={text.tools.output} wrapped />
  if (isObject(value) && value.type === 'content' && Array.isArray(value.value)) {
    return value.value.map((item, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no id
      <Piece key={at} item={item} />
    ))
  }
  return <Code text={JSON.stringify(value, null, 2)} language="json" label={text.tools.output} wrapped />
}

function Piece({ item }: { item: Json }) {
  if (!isObject(item)) return <Output value={item} />
  const { url, text: content } = item
  if (typeof content === 'string' || isObject(content)) return <Output value={content} />
  if (typeof url === 'string' && url.startsWith('/api/blobs/')) {
    return (
      <img
        src={url}
        alt={text.tools.outputImage}
        loading="lazy"
        className="m-3.5 max-h-80 max-w-[calc(100%-1.75rem)] rounded-lg"
      />
    )
  }
  return <Output value={item} />
}

function Large({ excerpt }: { excerpt: Excerpt }) {
  const of = (value: Json | undefined) =>
    plain(typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value, null, 2))
  return (
    <div>
      <Code text={of(excerpt.head)} language="" label={text.tools.output} wrapped />
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 border-y border-dashed border-line bg-surface px-3.5 py-2 text-xs text-muted">
        <span>{text.tools.truncated(size(excerpt.size), excerpt.rows ?? 0)}</span>
        {excerpt.url && (
          <a
            href={excerpt.url}
            target="_blank"
            rel="noopener"
            className="inline-flex items-center gap-1.5 font-medium text-accent hover:underline"
          >
            <Download size={13} aria-hidden />
            {text.tools.downloadOutput}
          </a>
        )}
      </p>
      <Code text={of(excerpt.tail)} language="" label={text.tools.output} wrapped />
    </div>
  )
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`
  const units = ['KiB', 'MiB', 'GiB']
  let value = bytes / 1024
  while (value >= 1024 && units.length > 1) {
    value /= 1024
    units.shift()
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[0]}`
}
