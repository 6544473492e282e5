import { useQuery } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { ChevronRight } from 'lucide-react'
import { useState } from 'react'
import { conversations } from '@/api/conversations'
import type { Changes, FileDiff } from '@/api/types'
import { Toggle } from '@/conversation/panel/Toggle'
import { Diff } from '@/conversation/tools/Diff'
import { hunksOf } from '@/conversation/tools/diff'
import { text } from '@/text'
import { Failed, Loading } from '@/ui/States'

const SCOPES = [
  { value: 'answer', label: text.changes.answer },
  { value: 'whole', label: text.changes.whole },
] as const
/** Number of files whose diffs are open at first. */
const OPEN = 3

/** The files that an answer or the whole conversation has changed, with line counts and diffs. */
export function ChangesPanel({ conversation, message }: { conversation: string; message: string }) {
  const [scope, setScope] = useState<'answer' | 'whole'>('answer')
  const { data, error, refetch } = useQuery({
    queryKey: ['changes', conversation, scope === 'answer' ? message : null],
    queryFn: ({ signal }) => conversations.changes(conversation, scope === 'answer' ? message : null, signal),
    staleTime: 0,
    gcTime: 0,
    retry: false,
  })
  return (
    <>
      <div className="flex min-h-11 items-center border-b border-line px-3">
        <Toggle label={text.changes.scope} choices={SCOPES} chosen={scope} choose={setScope} />
      </div>
      <div className="min-h-0 grow overflow-y-auto">
        {error ? (
          <Failed error={error} retry={() => void refetch()} className="m-4" />
        ) : data ? (
          <Files key={scope} changes={data} />
        ) : (
          <Loading rows={5} className="m-4" />
        )}
      </div>
    </>
  )
}

function Files({ changes }: { changes: Changes }) {
  const rest = changes.file_count - changes.files.length
  const notes = [
    changes.file_count === 0 && text.changes.none,
    rest > 0 && text.changes.rest(rest),
    changes.undone && text.changes.undone,
    changes.partial && text.changes.partial,
    ...changes.left_out.map(({ path, reason }) => text.changes.leftOut(path, reason)),
  ].filter(Boolean)
  return (
    <>
      <ul aria-label={text.changes.title} className="divide-y divide-line">
        {changes.files.map((file) => (
          <File key={file.path} file={file} opened={changes.files.length <= OPEN} />
        ))}
      </ul>
      {notes.map((note) => (
        <p key={String(note)} className="px-4 py-2 text-sm break-words text-muted">
          {note}
        </p>
      ))}
    </>
  )
}

function File({ file, opened }: { file: FileDiff; opened: boolean }) {
  const [open, setOpen] = useState(opened)
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="sticky top-0 z-10 flex min-h-10 w-full cursor-pointer items-center gap-2 bg-surface px-3 text-left text-sm hover:bg-hover max-md:min-h-11"
      >
        <ChevronRight size={15} aria-hidden className={clsx('shrink-0 text-faint', open && 'rotate-90')} />
        <span
          className={clsx(
            'min-w-0 grow font-mono text-[0.8125rem] break-all',
            file.change === 'deleted' && 'line-through',
          )}
        >
          {file.path}
        </span>
        <span className="shrink-0 text-xs text-muted">{text.changes.kinds[file.change]}</span>
        <span className="shrink-0 font-mono text-xs">
          {file.added > 0 && <span className="text-good">+{file.added}</span>}{' '}
          {file.removed > 0 && <span className="text-danger">−{file.removed}</span>}
        </span>
      </button>
      {open && <Content file={file} />}
    </li>
  )
}

function Content({ file }: { file: FileDiff }) {
  const note = file.obstacle ? text.changes.obstacles[file.obstacle] : file.diff === '' && text.changes.noLines
  return (
    <>
      {file.mixed && <p className="px-4 py-1.5 text-sm text-warn">{text.changes.mixed}</p>}
      {note && <p className="px-4 py-2 text-sm text-muted">{note}</p>}
      {file.diff && <Diff lines={hunksOf(file.diff)} tall />}
    </>
  )
}
