import { CalendarClock, CirclePlay, Pause, Play, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { type Job, useJobActions, useJobs } from '@/data/cron'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { moment } from '@/ui/format'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { When } from '@/ui/When'

/** The cron jobs: list, add, run, pause and remove. */
export default function Cron() {
  const { data, error, refetch } = useJobs()
  const [adding, setAdding] = useState(false)
  return (
    <Area
      title={text.settings.cron}
      about={text.cron.about}
      actions={
        <Button look="primary" onClick={() => setAdding(true)}>
          {text.cron.new}
        </Button>
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={3} />
      ) : data.data.length ? (
        <Table
          label={text.settings.cron}
          columns={COLUMNS}
          rows={data.data}
          keyOf={(job) => `${job.name} ${job.configured}`}
        />
      ) : (
        <Empty icon={CalendarClock} title={text.cron.empty} />
      )}
      {adding && <NewJobDialog onClose={() => setAdding(false)} />}
    </Area>
  )
}

/** The delivery target for moot's log, which is the default. */
const LOG = 'log'

const COLUMNS: readonly Column<Job>[] = [
  {
    head: text.common.name,
    cell: (job) => (
      <>
        <span className="font-medium break-all">{job.name}</span>
        <span className="line-clamp-2 text-xs text-muted">{job.error || job.prompt}</span>
      </>
    ),
  },
  {
    head: text.cron.schedule,
    wide: true,
    cell: (job) => (
      <>
        <code className="text-xs">{job.cron || (job.every ? text.cron.everySeconds(job.every) : job.at)}</code>
        <span className="block text-xs text-muted">{job.tz}</span>
        {job.deliver !== LOG && (
          <span className="block text-xs break-all text-muted">{text.cron.deliveredTo(job.deliver)}</span>
        )}
      </>
    ),
  },
  {
    head: text.cron.next,
    cell: (job) =>
      job.paused ? <Badge look="warn">{text.cron.paused}</Badge> : job.next ? moment(job.next) : text.common.never,
  },
  { head: text.cron.last, cell: (job) => <Last job={job} /> },
  { head: text.cron.actions, pinned: true, cell: (job) => <Actions job={job} /> },
]

function Last({ job: { last } }: { job: Job }) {
  if (!last) return text.common.never
  const status = last.conversation ? (
    <Link href={`/c/${last.conversation}`} className="underline underline-offset-2">
      {last.status}
    </Link>
  ) : (
    last.status
  )
  return (
    <span title={last.reason}>
      {status}
      <span className="block text-xs text-muted">
        <When at={last.at} />
      </span>
    </span>
  )
}

function Actions({ job }: { job: Job }) {
  const { run, pause, remove } = useJobActions()
  const [removing, setRemoving] = useState(false)
  const failure = run.error ?? pause.error ?? remove.error
  return (
    <span className="flex justify-end gap-1 max-md:flex-col max-md:items-end">
      <IconButton label={text.cron.runNamed(job.name)} onClick={() => run.mutate(job.name)}>
        <Play size={16} aria-hidden />
      </IconButton>
      <IconButton label={text.cron.pauseNamed(job.name, job.paused)} onClick={() => pause.mutate(job)}>
        {job.paused ? <CirclePlay size={16} aria-hidden /> : <Pause size={16} aria-hidden />}
      </IconButton>
      {!job.configured && (
        <IconButton label={text.cron.removeNamed(job.name)} onClick={() => setRemoving(true)}>
          <Trash2 size={16} aria-hidden />
        </IconButton>
      )}
      {removing && (
        <Dialog title={text.cron.removeNamed(job.name)} onClose={() => setRemoving(false)}>
          <div className="flex justify-end gap-2 p-5">
            <Button look="quiet" onClick={() => setRemoving(false)}>
              {text.common.cancel}
            </Button>
            <Button look="danger" onClick={() => remove.mutate(job.name)}>
              {text.cron.confirmRemove}
            </Button>
          </div>
        </Dialog>
      )}
      {failure && <Failed error={failure} />}
    </span>
  )
}

type Kind = 'cron' | 'every' | 'at'

function NewJobDialog({ onClose }: { onClose: () => void }) {
  const { add } = useJobActions()
  const [kind, setKind] = useState<Kind>('cron')
  function make(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const value = (name: string) => String(given.get(name) ?? '').trim()
    const job = {
      name: value('name'),
      prompt: value('prompt'),
      [kind]: value('when'),
      tz: value('tz'),
      deliver: value('deliver'),
    }
    add.mutate(job, { onSuccess: onClose })
  }
  return (
    <Dialog title={text.cron.new} onClose={onClose}>
      <form onSubmit={make} className="space-y-4 overflow-y-auto p-5">
        <Field label={text.common.name} about={text.cron.nameHelp}>
          {(field) => <input {...field} name="name" required maxLength={64} autoComplete="off" className={INPUT} />}
        </Field>
        <Field label={text.cron.prompt}>
          {(field) => <textarea {...field} name="prompt" required rows={4} className={INPUT} />}
        </Field>
        <Field label={text.cron.kind}>
          {(field) => (
            <select {...field} value={kind} onChange={(event) => setKind(event.target.value as Kind)} className={INPUT}>
              {Object.entries(text.cron.kinds).map(([name, label]) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={text.cron.schedule} about={text.cron.whenHelp[kind]}>
          {(field) => <input {...field} name="when" required maxLength={200} autoComplete="off" className={INPUT} />}
        </Field>
        <Field label={text.cron.timeZone}>
          {(field) => <input {...field} name="tz" defaultValue={ZONE} maxLength={60} className={INPUT} />}
        </Field>
        <Field label={text.cron.deliver} about={text.cron.deliverHelp}>
          {(field) => (
            <input
              {...field}
              name="deliver"
              defaultValue={LOG}
              required
              maxLength={2000}
              autoComplete="off"
              className={INPUT}
            />
          )}
        </Field>
        {add.error && <Failed error={add.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" disabled={add.isPending}>
            {text.cron.create}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone
