import { File as FileIcon } from 'lucide-react'
import { text } from '@/text'

const RASTER = /^image\/(png|jpeg|gif|webp|avif|bmp)$/

interface Props {
  url: string
  name: string
  mediaType: string
  /** Size in bytes; null if unknown. */
  size: number | null
}

/** An attached file: a thumbnail for images, otherwise its name and size. Only stored or inline images are loaded. */
export function FileChip({ url, name, mediaType, size }: Props) {
  const address = url.startsWith('blob:') ? `/api/blobs/${url.slice('blob:'.length)}` : url
  const own = address.startsWith('/api/blobs/') || /^data:image\/(png|jpeg|gif|webp|avif|bmp);/.test(address)
  if (own && RASTER.test(mediaType)) {
    return (
      <a href={address} target="_blank" rel="noopener" title={name} className="block">
        <img
          src={address}
          alt={name || text.message.attachedImage}
          loading="lazy"
          className="max-h-56 max-w-72 rounded-xl border border-line object-cover"
        />
      </a>
    )
  }
  const shown = (
    <>
      <FileIcon size={15} aria-hidden className="shrink-0 text-muted" />
      <span className="max-w-56 truncate">{name || mediaType}</span>
      {size !== null && <span className="text-muted">{text.message.bytes(size)}</span>}
    </>
  )
  const look = 'inline-flex min-h-9 items-center gap-2 rounded-xl border border-line bg-raised px-3 text-sm'
  return address.startsWith('/api/blobs/') ? (
    <a href={address} target="_blank" rel="noopener" className={`${look} hover:bg-hover`}>
      {shown}
    </a>
  ) : (
    <span className={look}>{shown}</span>
  )
}
