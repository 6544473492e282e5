import { useInfiniteQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { LogEvent, Message, Page } from '@/api/types'
import { Code } from '@/conversation/markdown/Code'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { moment } from '@/ui/format'
import { Failed, Loading } from '@/ui/States'

/** The raw events of a message: the vendor's bytes and the translated chunks. */
export default function Raw({
  conversation,
  message,
  onClose,
}: {
  conversation: string
  message: Message
  onClose: () => void
}) {
  const query = useInfiniteQuery({
    queryKey: ['raw', conversation, message.id],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<LogEvent>>(`/conversations/${encodeURIComponent(conversation)}/raw`, {
        query: { message: message.id, cursor: pageParam, limit: 100 },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  })
  const events = query.data?.pages.flatMap((page) => page.data) ?? []
  return (
    <Dialog
      title={text.raw.title}
      onClose={onClose}
      className="mr-0 h-dvh max-h-dvh! w-[min(46rem,100vw)]! rounded-none! rounded-l-2xl!"
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard */}
      <div tabIndex={0} role="region" aria-label={text.raw.events} className="min-h-0 grow overflow-y-auto">
        {query.isPending && <Loading className="p-5" />}
        {query.isError && <Failed className="m-5" error={query.error} retry={() => void query.refetch()} />}
        <ol className="divide-y divide-line">
          {events.map((event) => (
            <One key={event.seq} event={event} />
          ))}
        </ol>
        {query.hasNextPage && (
          <div className="p-4">
            <Button onClick={() => void query.fetchNextPage()} disabled={query.isFetching}>
              {text.common.loadMore}
            </Button>
          </div>
        )}
        {query.isSuccess && !events.length && <p className="p-5 text-sm text-muted">{text.raw.empty}</p>}
      </div>
    </Dialog>
  )
}

function One({ event }: { event: LogEvent }) {
  const kinds = event.chunks.map((chunk) => chunk.type).join(', ')
  return (
    <li className="px-5 py-2.5">
      <details>
        <summary className="flex min-h-8 cursor-pointer flex-wrap items-baseline gap-x-3 text-sm max-md:min-h-11">
          <span className="font-mono text-xs text-faint tabular-nums">{event.seq}</span>
          <span className="font-medium">{event.kind}</span>
          <span className="min-w-0 grow truncate text-muted">
            {[event.phase, event.key, kinds].filter(Boolean).join(' · ')}
          </span>
          <span className="text-xs text-faint">{moment(event.at / 1_000)}</span>
        </summary>
        {(event.raw || event.raw_base64) && (
          <Code className="mt-2 rounded-lg bg-sunken" text={event.raw ?? event.raw_base64 ?? ''} language="" wrapped />
        )}
        {event.chunks.length > 0 && (
          <Code
            className="mt-2 rounded-lg bg-sunken"
            text={JSON.stringify(event.chunks, null, 2)}
            language="json"
            wrapped
          />
        )}
      </details>
    </li>
  )
}
