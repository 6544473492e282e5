import { useState } from 'react'
import { type Draft, type Redaction, useDraft, useShareActions } from '@/data/sharing'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { moment } from '@/ui/format'
import { SecretDialog } from '@/ui/SecretDialog'
import { Failed, Loading } from '@/ui/States'

interface Props {
  conversation: string
  onClose: () => void
}

const TIMES: readonly [string, number][] = [
  [text.share.times.hour, 3_600],
  [text.share.times.day, 86_400],
  [text.share.times.week, 7 * 86_400],
  [text.share.times.month, 30 * 86_400],
]

/** The share dialog: first what is redacted, then the link. */
export default function Share({ conversation, onClose }: Props) {
  const [keep, setKeep] = useState<readonly string[]>([])
  const [seconds, setSeconds] = useState(7 * 86_400)
  const { data, error, refetch } = useDraft(conversation, keep)
  const { create } = useShareActions()
  if (create.data) {
    const { url, expires_at, reach } = create.data
    const about = text.share.linkAbout(moment(expires_at))
    return (
      <SecretDialog title={text.share.link} about={about} secret={url} onClose={onClose}>
        {reach === 'machine' && <p>{text.share.machineOnly}</p>}
      </SecretDialog>
    )
  }
  return (
    <Dialog title={text.share.title} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        <p className="text-muted">{text.share.about}</p>
        {error ? (
          <Failed error={error} retry={() => void refetch()} />
        ) : data ? (
          <Redacted draft={data} />
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
          {text.share.emails}
        </label>
        <Field label={text.share.expires}>
          {(field) => (
            <select
              {...field}
              className={INPUT}
              value={seconds}
              onChange={(event) => setSeconds(Number(event.target.value))}
            >
              {TIMES.map(([label, value]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {create.error && <Failed error={create.error} retry={() => void refetch().then(() => create.reset())} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button
            look="primary"
            disabled={!data || create.isPending}
            onClick={() => data && create.mutate({ conversation, keep, expires_in: seconds, digest: data.digest })}
          >
            {text.share.create}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function Redacted({ draft }: { draft: Draft }) {
  const kinds = [...new Set(draft.left_out.map((one) => one.kind))]
  if (!kinds.length) return <p>{text.share.nothingRedacted}</p>
  return (
    <section aria-label={text.share.redacted} className="rounded-lg border border-line bg-sunken px-3 py-2">
      <h3 className="font-medium">{text.share.redactedTitle}</h3>
      <ul className="mt-1 max-h-56 space-y-1 overflow-y-auto">
        {kinds.map((kind) => (
          <Kind key={kind} kind={kind} places={draft.left_out.filter((one) => one.kind === kind)} />
        ))}
      </ul>
    </section>
  )
}

function Kind({ kind, places }: { kind: string; places: readonly Redaction[] }) {
  const count = places.reduce((sum, one) => sum + one.count, 0)
  const more = kind === 'pictures' ? text.share.images : ''
  return (
    <li>
      <span className="font-medium">
        {text.common.count(count, kind)}
        {more}
      </span>
      <span className="block text-xs text-muted">{places.map((one) => one.where).join('; ')}</span>
    </li>
  )
}
