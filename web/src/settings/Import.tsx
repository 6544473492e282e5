import { FolderInput, Upload } from 'lucide-react'
import { useRef } from 'react'
import { Link } from 'wouter'
import {
  type Brought,
  type Found,
  type Import,
  isOver,
  useBringIn,
  useFound,
  useImport,
  useImports,
  useWatch,
} from '@/data/imports'
import { Area } from '@/settings/Area'
import { Button } from '@/ui/Button'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { count, ofThings, plural } from '@/ui/words'

/** Conversations of other programs: what is on this machine, a file from elsewhere, and what became of both. */
export default function ImportView() {
  const found = useFound()
  const last = useImports().data?.data[0]
  const { data: shown } = useImport(last?.id)
  const bring = useBringIn()
  const file = useRef<HTMLInputElement>(null)
  const busy = bring.isPending || (shown !== undefined && !isOver(shown))
  return (
    <Area
      title="Import"
      about="Conversations of other agents and chats come in with every record of theirs. Running it again adds only what is new; nothing is written where they come from."
      actions={
        <>
          <Button disabled={busy} onClick={() => file.current?.click()}>
            <Upload size={16} aria-hidden />A file
          </Button>
          <input
            ref={file}
            type="file"
            aria-label="A file to bring in"
            className="sr-only"
            tabIndex={-1}
            onChange={(event) => {
              const chosen = event.target.files?.[0]
              if (chosen) bring.mutate(chosen)
              event.target.value = ''
            }}
          />
          <Button look="primary" disabled={busy || !found.data?.data.length} onClick={() => bring.mutate(null)}>
            Bring all in
          </Button>
        </>
      }
    >
      <div className="space-y-6">
        <Watching />
        {shown && <Shown one={shown} />}
        {found.error ? (
          <Failed error={found.error} again={() => void found.refetch()} />
        ) : found.data ? (
          <All found={found.data.data} />
        ) : (
          <Loading rows={3} />
        )}
      </div>
    </Area>
  )
}

/** Whether what agents write comes in by itself, and how to have that. */
function Watching() {
  const { data: watch } = useWatch()
  if (!watch) return null
  if (!watch.wanted) {
    return (
      <p className="text-sm text-muted">
        To have what the agents here write come in as they write it, put{' '}
        <code className="font-mono text-xs">imports: {'{watch: true}'}</code> into the configuration.
      </p>
    )
  }
  return (
    <p role="status" className={watch.problem ? 'text-sm break-words text-danger' : 'text-sm text-muted'}>
      {watch.problem
        ? `What the agents here write is not followed: ${watch.problem}`
        : `What the agents here write comes in as they write it${watch.messages ? `; ${plural(watch.messages, 'message')} since the server began` : ''}.`}
    </p>
  )
}

function All({ found }: { found: readonly Found[] }) {
  if (!found.length) {
    return (
      <Empty icon={FolderInput} title="No other agent keeps conversations on this machine">
        A file from elsewhere, such as an export of ChatGPT, can be brought in all the same.
      </Empty>
    )
  }
  return <Table label="On this machine" columns={FOUND} rows={found} keyOf={(one) => one.format} />
}

const FOUND: readonly Column<Found>[] = [
  {
    head: 'On this machine',
    cell: (one) => (
      <>
        <span className="font-medium">{one.format}</span>
        <span className="block font-mono text-xs break-all text-muted">{one.path}</span>
      </>
    ),
  },
  { head: 'Files', figures: true, cell: (one) => count(one.sources) },
  { head: 'Size', figures: true, wide: true, cell: (one) => size(one.bytes) },
  { head: 'Conversations here', figures: true, cell: (one) => count(one.conversations) },
]

function Shown({ one }: { one: Import }) {
  const share = one.bytes ? Math.min(1, one.bytes_done / one.bytes) : isOver(one) ? 1 : 0
  return (
    <section aria-label="The last import" className="rounded-xl border border-line bg-raised p-4 text-sm">
      <div className="flex flex-wrap items-baseline justify-between gap-2">
        <h2 className="font-semibold">{stateOf(one)}</h2>
        <span className="text-muted">{sums(one)}</span>
      </div>
      {!isOver(one) && (
        <progress
          aria-label="How far it is"
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
          {plural(one.unclaimed.count, 'file')} that no format knows: {one.unclaimed.some.slice(0, 3).join(', ')}
          {one.unclaimed.count > 3 && ` and ${count(one.unclaimed.count - 3)} more`}
        </p>
      )}
      {one.brought.length > 0 && (
        <details className="mt-3">
          <summary className="cursor-pointer py-1 text-muted max-md:py-3">
            {plural(one.brought.length, 'conversation')}
          </summary>
          <ul className="mt-2 divide-y divide-line">
            {one.brought.map((brought) => (
              <li key={`${brought.path} ${brought.conversation} ${brought.title}`} className="py-2">
                <Told brought={brought} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  )
}

const STATES: Record<Import['state'], string> = {
  queued: 'Waiting for another import',
  running: 'Bringing in',
  finished: 'Brought in',
  failed: 'Ended early',
}

const OUTCOMES: Readonly<Record<string, string>> = { known: 'here already', empty: 'without a word' }

function stateOf(one: Import): string {
  const isNothing = one.state === 'finished' && !one.added && !one.grown && !one.failed.length
  return isNothing ? 'Nothing new' : STATES[one.state]
}

function sums(one: Import): string {
  const told = Object.entries(one.conversations).map(
    ([outcome, many]) => `${count(many)} ${OUTCOMES[outcome] ?? outcome}`,
  )
  if (one.unchanged) told.push(`${plural(one.unchanged, 'source')} as before`)
  if (one.added) told.push(plural(one.added, 'new message'))
  if (one.problems) told.push(`${plural(one.problems, 'record')} that could not be read`)
  return told.join(' · ')
}

function Told({ brought }: { brought: Brought }) {
  const words = (['kept', 'approximated', 'lost'] as const)
    .map((name) => [name, Object.entries(brought.fidelity[name]).filter(([, many]) => many)] as const)
    .filter(([, things]) => things.length)
    .map(([name, things]) => `${name}: ${things.map(([thing, many]) => ofThings(many, thing)).join(', ')}`)
  return (
    <>
      <p className="flex flex-wrap justify-between gap-2">
        {brought.conversation ? (
          <Link href={`/c/${brought.conversation}`} className="min-w-0 truncate font-medium hover:underline">
            {brought.title || 'untitled'}
          </Link>
        ) : (
          <span className="min-w-0 truncate font-medium">{brought.title || brought.path}</span>
        )}
        <span className="text-muted">{OUTCOMES[brought.outcome] ?? brought.outcome}</span>
      </p>
      {words.map((line) => (
        <p key={line} className="text-xs text-muted">
          {line}
        </p>
      ))}
      {brought.notes.map((note) => (
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
