import { useState } from 'react'
import { type Draft, type LeftOut, useDraft, useShareActs } from '@/data/sharing'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'
import { ToldOnce } from '@/ui/ToldOnce'
import { moment, ofThings } from '@/ui/words'

interface Props {
  conversation: string
  onClose: () => void
}

const TIMES: readonly [string, number][] = [
  ['an hour', 3_600],
  ['a day', 86_400],
  ['7 days', 7 * 86_400],
  ['30 days', 30 * 86_400],
]

/** A page for whoever has its link: first what is not on it, then the link. */
export default function Share({ conversation, onClose }: Props) {
  const [keep, setKeep] = useState<readonly string[]>([])
  const [seconds, setSeconds] = useState(7 * 86_400)
  const { data, error, refetch } = useDraft(conversation, keep)
  const { create } = useShareActs()
  if (create.data) {
    const { url, expires_at, reach } = create.data
    const about = `Copy it now: nobody can tell it again. It works until ${moment(expires_at)}.`
    return (
      <ToldOnce title="The link" about={about} text={url} onClose={onClose}>
        {reach === 'machine' && <p>Only this machine reaches that address: others can’t open the link yet.</p>}
      </ToldOnce>
    )
  }
  return (
    <Dialog title="Share a page" onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        <p className="text-muted">
          Whoever has the link can read the conversation as it stands now. What is said later is not on the page.
        </p>
        {error ? (
          <Failed error={error} again={() => void refetch()} />
        ) : data ? (
          <Missing draft={data} />
        ) : (
          <Loading rows={3} />
        )}
        <label className="flex min-h-9 cursor-pointer items-center gap-3 max-md:min-h-11">
          <input
            type="checkbox"
            checked={keep.includes('emails')}
            onChange={(event) => setKeep(event.target.checked ? ['emails'] : [])}
            className="size-4 shrink-0 accent-accent"
          />
          E-mail addresses may stay
        </label>
        <Field label="The link works for">
          {(field) => (
            <select
              {...field}
              className={INPUT}
              value={seconds}
              onChange={(event) => setSeconds(Number(event.target.value))}
            >
              {TIMES.map(([words, value]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        {create.error && <Failed error={create.error} again={() => void refetch().then(() => create.reset())} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={!data || create.isPending}
            onClick={() => data && create.mutate({ conversation, keep, expires_in: seconds, digest: data.digest })}
          >
            Make the link
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function Missing({ draft }: { draft: Draft }) {
  const kinds = [...new Set(draft.left_out.map((one) => one.kind))]
  if (!kinds.length) return <p>Nothing was found that had to be left out. Look through it yourself all the same.</p>
  return (
    <section aria-label="What is not on the page" className="rounded-lg border border-line bg-sunken px-3 py-2">
      <h3 className="font-medium">Not on the page</h3>
      <ul className="mt-1 max-h-56 space-y-1 overflow-y-auto">
        {kinds.map((kind) => (
          <Kind key={kind} kind={kind} places={draft.left_out.filter((one) => one.kind === kind)} />
        ))}
      </ul>
    </section>
  )
}

function Kind({ kind, places }: { kind: string; places: readonly LeftOut[] }) {
  const count = places.reduce((sum, one) => sum + one.count, 0)
  const more = kind === 'pictures' ? ' made anew, without what stood in their files: look at what they show' : ''
  return (
    <li>
      <span className="font-medium">
        {ofThings(count, kind)}
        {more}
      </span>
      <span className="block text-xs text-muted">{places.map((one) => one.where).join('; ')}</span>
    </li>
  )
}
