import { useQuery } from '@tanstack/react-query'
import { Check, Copy } from 'lucide-react'
import { useState } from 'react'
import { type McpResource, referenceTo, resourcesQuery } from '@/data/mcp'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { IconButton } from '@/ui/Button'
import { useCopy } from '@/ui/copy'
import { Dialog } from '@/ui/Dialog'
import { INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'

/** Number of resources from which there is a search field. */
const SEARCHED = 11
/** Maximum number of resources that are shown. The search field finds the others. */
const MOST = 200

/** A dialog with the resources of a server, to copy references to them. */
export function McpResources({ server, onClose }: { server: string; onClose: () => void }) {
  const { data, error, refetch } = useQuery(resourcesQuery(server))
  return (
    <Dialog title={text.mcp.resourcesOf(server)} onClose={onClose}>
      {error ? (
        <Failed error={error} retry={() => void refetch()} className="m-5" />
      ) : !data ? (
        <Loading rows={4} className="m-5" />
      ) : data.data.length ? (
        <Resources server={server} resources={data.data} />
      ) : (
        <p className="p-5 text-sm text-muted">{text.mcp.resourcesEmpty}</p>
      )}
    </Dialog>
  )
}

function Resources({ server, resources }: { server: string; resources: readonly McpResource[] }) {
  const [query, setQuery] = useState('')
  const [last, setLast] = useState('')
  const { copied, copy } = useCopy()
  const words = query.toLowerCase().split(/\s+/)
  const found = resources.filter(({ uri, name, description }) => {
    const content = `${uri} ${name} ${description}`.toLowerCase()
    return words.every((word) => content.includes(word))
  })
  const shown = found.slice(0, MOST)
  return (
    <>
      <div className="space-y-2 border-b border-line px-5 py-3 text-sm text-muted">
        <p>
          {text.mcp.resourcesAbout} {resources.some((one) => one.is_template) && text.mcp.templateAbout}
        </p>
        {resources.length >= SEARCHED && (
          <input
            type="search"
            value={query}
            onChange={(event) => setQuery(event.target.value)}
            aria-label={text.mcp.searchResources}
            placeholder={text.mcp.searchResources}
            className={INPUT}
          />
        )}
        <p role="status" className={copied ? 'sr-only' : 'text-xs empty:hidden'}>
          {copied
            ? text.mcp.copiedReference(last)
            : !found.length
              ? text.mcp.noResources
              : shown.length < resources.length && text.common.shown(shown.length, resources.length)}
        </p>
      </div>
      <ul className="divide-y divide-line overflow-y-auto">
        {shown.map((one) => (
          <Resource
            key={`${one.is_template} ${one.uri}`}
            resource={one}
            reference={referenceTo(server, one.uri)}
            copied={copied ? last : ''}
            copy={(reference) => {
              setLast(reference)
              copy(reference)
            }}
          />
        ))}
      </ul>
    </>
  )
}

interface ResourceProps {
  resource: McpResource
  reference: string | null
  /** The reference that was just copied. */
  copied: string
  copy: (reference: string) => void
}

function Resource({ resource, reference, copied, copy }: ResourceProps) {
  const { uri, name, description, media_type, is_template } = resource
  return (
    <li className="flex items-start gap-3 py-3 pr-3 pl-5">
      <div className="min-w-0 flex-1 space-y-0.5 text-sm">
        <p className="font-mono text-xs font-medium break-all">{uri}</p>
        <p className="break-words">{name}</p>
        {description && <p className="break-words whitespace-pre-wrap text-muted">{description}</p>}
        <p className="flex flex-wrap items-center gap-2 text-xs text-muted empty:hidden">
          {is_template && <Badge look="accent">{text.mcp.template}</Badge>}
          {media_type && <span className="font-mono break-all">{media_type}</span>}
        </p>
      </div>
      {reference && (
        <IconButton label={text.mcp.copyReference(reference)} onClick={() => copy(reference)}>
          {copied === reference ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
        </IconButton>
      )}
    </li>
  )
}
