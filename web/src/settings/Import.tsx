import { FolderInput, Upload } from 'lucide-react'
import { useRef } from 'react'
import { Link } from 'wouter'
import {
  type Found,
  type Import,
  type ImportedConversation,
  isOver,
  type Unread,
  useFound,
  useImport,
  useImports,
  useStartImport,
  useUnread,
  useWatch,
} from '@/data/imports'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { count } from '@/ui/format'
import { Empty, Failed, Loaded } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'

/** Import of conversations from other agents and files, with a report of the last import. */
export default function ImportView() {
  const found = useFound()
  const last = useImports().data?.data[0]
  const { data: shown } = useImport(last?.id)
  const startImport = useStartImport()
  const file = useRef<HTMLInputElement>(null)
  const busy = startImport.isPending || (shown !== undefined && !isOver(shown))
  return (
    <Area
      title={text.settings.import}
      about={text.import.about}
      actions={
        <>
          <Button disabled={busy} onClick={() => file.current?.click()}>
            <Upload size={16} aria-hidden />
            {text.import.file}
          </Button>
          <input
            ref={file}
            type="file"
            aria-label={text.import.fileInput}
            className="sr-only"
            tabIndex={-1}
            onChange={(event) => {
              const chosen = event.target.files?.[0]
              if (chosen) startImport.mutate(chosen)
              event.target.value = ''
            }}
          />
          <Button look="primary" disabled={busy || !found.data?.data.length} onClick={() => startImport.mutate(null)}>
            {text.import.all}
          </Button>
        </>
      }
    >
      <div className="space-y-6">
        <WatchStatus />
        {shown && <ImportReport one={shown} />}
        <Loaded query={found} rows={3}>
          {({ data }) => <All found={data} />}
        </Loaded>
        <UnreadFolders />
      </div>
    </Area>
  )
}

/** The state of automatic import, or instructions for enabling it. */
function WatchStatus() {
  const { data: watch } = useWatch()
  if (!watch) return null
  if (!watch.wanted) {
    return (
      <p className="text-sm text-muted">
        {text.import.watchBefore}
        <code className="font-mono text-xs">imports: {'{watch: true}'}</code>
        {text.import.watchAfter}
      </p>
    )
  }
  return (
    <p role="status" className={watch.problem ? 'text-sm break-words text-danger' : 'text-sm text-muted'}>
      {watch.problem ? text.import.watchProblem(watch.problem) : text.import.watching(watch.messages)}
    </p>
  )
}

function All({ found }: { found: readonly Found[] }) {
  if (!found.length) {
    return (
      <Empty icon={FolderInput} title={text.import.empty}>
        {text.import.emptyAbout}
      </Empty>
    )
  }
  return <Table label={text.import.found} columns={FOUND} rows={found} keyOf={(one) => one.format} />
}

const FOUND: readonly Column<Found>[] = [
  {
    head: text.import.found,
    cell: (one) => (
      <>
        <span className="font-medium">{one.format}</span>
        <span className="block font-mono text-xs break-all text-muted">{one.path}</span>
      </>
    ),
  },
  { head: text.import.files, figures: true, cell: (one) => count(one.sources) },
  { head: text.import.size, figures: true, wide: true, cell: (one) => size(one.bytes) },
  { head: text.import.imported, figures: true, cell: (one) => count(one.conversations) },
]

/** The folders of agents on the server's machine from which nothing can be read. Render nothing if there are none. */
function UnreadFolders() {
  const query = useUnread()
  if (!query.data) return query.error ? <Failed error={query.error} retry={() => void query.refetch()} /> : null
  if (!query.data.data.length) return null
  return <Table label={text.import.unread} columns={UNREAD} rows={query.data.data} keyOf={({ path }) => path} />
}

const UNREAD: readonly Column<Unread>[] = [
  {
    head: text.import.unread,
    cell: (one) => (
      <>
        <span className="font-medium">{one.program}</span>
        <span className="block font-mono text-xs break-all text-muted">{one.path}</span>
      </>
    ),
  },
  { head: text.import.reason, cell: (one) => one.reason },
  {
    head: text.import.size,
    figures: true,
    wide: true,
    cell: (one) => (one.is_whole ? size(one.bytes) : text.import.atLeast(size(one.bytes))),
  },
]

function ImportReport({ one }: { one: Import }) {
  const share = one.bytes ? Math.min(1, one.bytes_done / one.bytes) : isOver(one) ? 1 : 0
  return (
    <section aria-label={text.import.last} className="rounded-xl border border-line bg-raised p-4 text-sm">
      <div className="flex flex-wrap items-baseline justify-between gap-2">
        <h2 className="font-semibold">{stateOf(one)}</h2>
        <span className="text-muted">{sums(one)}</span>
      </div>
      {!isOver(one) && (
        <progress
          aria-label={text.import.progress}
          className="mt-3 h-2 w-full overflow-hidden rounded-full accent-accent"
          value={share}
          max={1}
        />
      )}
      {one.error && <p className="mt-2 break-words text-danger">{one.error}</p>}
      {one.failed.map((failed) => (
        <p key={failed.path} className="mt-2 break-words text-danger">
          {failed.path}: {failed.problem}
        </p>
      ))}
      {one.unclaimed.count > 0 && (
        <p className="mt-2 break-words text-muted">
          {text.import.unrecognized(one.unclaimed.count, one.unclaimed.some.slice(0, 3), one.unclaimed.count - 3)}
        </p>
      )}
      {one.brought.length > 0 && (
        <details className="mt-3">
          <summary className="cursor-pointer py-1 text-muted max-md:py-3">
            {text.import.conversations(one.brought.length)}
          </summary>
          <ul className="mt-2 divide-y divide-line">
            {one.brought.map((item) => (
              <li key={`${item.path} ${item.conversation} ${item.title}`} className="py-2">
                <Imported item={item} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  )
}

const OUTCOMES = text.import.outcomes

function stateOf(one: Import): string {
  const isNothing = one.state === 'finished' && !one.added && !one.grown && !one.failed.length
  return isNothing ? text.import.upToDate : text.import.states[one.state]
}

function sums(one: Import): string {
  const facts = Object.entries(one.conversations).map(
    ([outcome, many]) => `${count(many)} ${OUTCOMES[outcome] ?? outcome}`,
  )
  if (one.unchanged) facts.push(text.import.unchanged(one.unchanged))
  if (one.added) facts.push(text.import.newMessages(one.added))
  if (one.problems) facts.push(text.import.unreadable(one.problems))
  return facts.join(' · ')
}

function Imported({ item }: { item: ImportedConversation }) {
  const lines = (['kept', 'approximated', 'lost'] as const)
    .map((name) => [name, Object.entries(item.fidelity[name]).filter(([, many]) => many)] as const)
    .filter(([, counts]) => counts.length)
    .map(([name, counts]) =>
      text.common.labeled(
        text.import.fidelity[name],
        text.common.list(counts.map(([thing, many]) => text.common.count(many, thing))),
      ),
    )
  return (
    <>
      <p className="flex flex-wrap justify-between gap-2">
        {item.conversation ? (
          <Link href={`/c/${item.conversation}`} className="min-w-0 truncate font-medium hover:underline">
            {item.title || text.common.untitled}
          </Link>
        ) : (
          <span className="min-w-0 truncate font-medium">{item.title || item.path}</span>
        )}
        <span className="text-muted">{OUTCOMES[item.outcome] ?? item.outcome}</span>
      </p>
      {lines.map((line) => (
        <p key={line} className="text-xs text-muted">
          {line}
        </p>
      ))}
      {item.notes.map((note) => (
        <p key={note} className="text-xs break-words text-danger">
          {note}
        </p>
      ))}
    </>
  )
}

function size(bytes: number): string {
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)}\u00a0kB`
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)}\u00a0MB` : `${(bytes / 1e9).toFixed(2)}\u00a0GB`
}
