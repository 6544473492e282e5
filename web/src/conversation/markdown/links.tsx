import { ExternalLink, ImageOff } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { text } from '@/text'

const SCHEMES = new Set(['http:', 'https:', 'mailto:'])

/** Parse an external URL. Return null for URLs that must not be opened by a click (`javascript:`, `data:`, relative ones). */
export function outside(address: string | undefined): URL | null {
  try {
    const url = new URL(address ?? '')
    return SCHEMES.has(url.protocol) ? url : null
  } catch {
    return null
  }
}

/** A link in untrusted text. Its target is visible and opens in a new tab; nothing is prefetched. */
export function MarkdownLink({ href, children }: { href?: string; children?: ReactNode }) {
  const url = outside(href)
  if (!url)
    return (
      <span className="underline decoration-dotted underline-offset-4" title={href}>
        {children}
      </span>
    )
  return (
    <a
      href={url.href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      title={url.href}
      className="font-medium text-accent underline decoration-accent/40 underline-offset-4 hover:decoration-accent"
    >
      {children}
    </a>
  )
}

/** An image in untrusted text. Stored images are shown on click; external ones are never loaded, only linked. */
export function MarkdownImage({ src, alt }: { src?: string | Blob; alt?: string }) {
  const [shown, setShown] = useState(false)
  const address = typeof src === 'string' ? src : ''
  if (/^\/api\/blobs\/[0-9a-f]{64}$/.test(address))
    return <OwnImage address={address} alt={alt} shown={shown} show={() => setShown(true)} />
  const url = outside(address)
  return (
    <span className="my-1 inline-flex max-w-full items-center gap-2 rounded-lg border border-line bg-sunken px-3 py-2 text-sm text-muted">
      <ImageOff size={16} aria-hidden className="shrink-0" />
      <span className="min-w-0 truncate">{alt || text.code.image}</span>
      {url && (
        <a
          href={url.href}
          target="_blank"
          rel="noopener noreferrer nofollow"
          className="inline-flex shrink-0 items-center gap-1 font-medium text-accent underline-offset-4 hover:underline"
        >
          {text.code.open(url.host)}
          <ExternalLink size={13} aria-hidden />
        </a>
      )}
    </span>
  )
}

function OwnImage({ address, alt, shown, show }: { address: string; alt?: string; shown: boolean; show: () => void }) {
  if (shown) return <img src={address} alt={alt ?? ''} className="my-2 max-h-96 max-w-full rounded-lg" />
  return (
    <button
      type="button"
      onClick={show}
      className="rounded-lg border border-line bg-sunken px-3 py-2 text-sm text-muted hover:bg-hover"
    >
      {text.code.showImage(alt ?? '')}
    </button>
  )
}
