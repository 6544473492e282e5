import { type FormEvent, type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import { STATUSES, type Task, type TaskFields, type TaskStatus, useTask, useTaskActions } from '@/data/tasks'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'
import { When } from '@/ui/When'

/** A dialog to add a task. */
export function NewTask({ project, onClose }: { project: string; onClose: () => void }) {
  const { add } = useTaskActions(project)
  return (
    <Dialog title={text.tasks.new} onClose={onClose}>
      <Form onSubmit={(fields) => add.mutate(fields, { onSuccess: onClose })}>
        {add.error && <Failed error={add.error} />}
        <div className="flex justify-end gap-2">
          <Button look="quiet" onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" disabled={add.isPending}>
            {text.tasks.add}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}

interface Props {
  project: string
  number: number
  onClose: () => void
}

/** A task with its fields, comments and history. */
export function TaskDialog({ project, number, onClose }: Props) {
  const { data, error, refetch } = useTask(project, number)
  return (
    <Dialog title={text.tasks.titleOf(number)} onClose={onClose}>
      <div className="space-y-6 overflow-y-auto p-5">
        {error && !data ? (
          <Failed error={error} retry={() => void refetch()} />
        ) : data ? (
          <>
            <Edit project={project} task={data.task} etag={data.etag} onClose={onClose} />
            <Comments project={project} number={number} comments={data.comments} />
            <History history={data.history} />
          </>
        ) : (
          <Loading rows={4} />
        )}
      </div>
    </Dialog>
  )
}

function Edit({ project, task, etag, onClose }: { project: string; task: Task; etag: string; onClose: () => void }) {
  const { change, remove } = useTaskActions(project)
  // the task as it was when editing started: saving must not undo what others have changed meanwhile
  const [start, setStart] = useState({ task, etag })
  const [removing, setRemoving] = useState(false)
  const isStale = fieldsOf(start.task) !== fieldsOf(task) // comments don’t conflict
  const failure = change.error ?? remove.error
  function save(fields: TaskFields) {
    change.mutate({ number: task.number, fields, etag: isStale ? start.etag : etag }, { onSuccess: onClose })
  }
  return (
    <Form key={start.etag} task={start.task} onSubmit={save}>
      {failure && <Failed error={failure} />}
      {isStale && (
        <p role="status" className="flex flex-wrap items-center gap-2 text-sm text-warn">
          {text.tasks.changed}
          <Button onClick={() => setStart({ task, etag })}>{text.tasks.load}</Button>
        </p>
      )}
      <div className="flex flex-wrap justify-between gap-2">
        {removing ? (
          <Button look="danger" onClick={() => remove.mutate(task.number, { onSuccess: onClose })}>
            {text.tasks.confirmRemove}
          </Button>
        ) : (
          <Button look="danger" onClick={() => setRemoving(true)}>
            {text.common.delete}
          </Button>
        )}
        <Button type="submit" look="primary" disabled={change.isPending}>
          {text.common.save}
        </Button>
      </div>
    </Form>
  )
}

/** Return the editable fields as a string, for comparisons. */
function fieldsOf({ title, description, status, tags, assignee, due }: Task): string {
  return JSON.stringify([title, description, status, tags, assignee, due])
}

interface FormProps {
  task?: Task
  onSubmit: (fields: TaskFields) => void
  children: ReactNode
}

/** The fields of a task. */
function Form({ task, onSubmit, children }: FormProps) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const value = (name: string) => String(given.get(name) ?? '').trim()
    const tags = value('tags').split(',')
    onSubmit({
      title: value('title'),
      description: value('description'),
      status: value('status') as TaskStatus,
      tags: tags.map((tag) => tag.trim()).filter(Boolean),
      assignee: value('assignee'),
      due: value('due'),
    })
  }
  return (
    <form onSubmit={submit} className={task ? 'space-y-4' : 'space-y-4 overflow-y-auto p-5'}>
      <Field label={text.tasks.title}>
        {(field) => (
          <input
            {...field}
            name="title"
            required
            maxLength={200}
            autoComplete="off"
            defaultValue={task?.title}
            className={INPUT}
          />
        )}
      </Field>
      <Field label={text.tasks.description}>
        {(field) => (
          <textarea
            {...field}
            name="description"
            rows={4}
            maxLength={50_000}
            defaultValue={task?.description}
            className={`${INPUT} py-2`}
          />
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={text.tasks.status}>
          {(field) => (
            <select {...field} name="status" defaultValue={task?.status ?? 'backlog'} className={INPUT}>
              {STATUSES.map((status) => (
                <option key={status} value={status}>
                  {text.tasks.statuses[status]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={text.tasks.due}>
          {(field) => <input {...field} name="due" type="date" defaultValue={task?.due} className={INPUT} />}
        </Field>
        <Field label={text.tasks.assignee}>
          {(field) => (
            <input
              {...field}
              name="assignee"
              maxLength={200}
              autoComplete="off"
              defaultValue={task?.assignee}
              className={INPUT}
            />
          )}
        </Field>
        <Field label={text.tasks.tags} about={text.tasks.tagsHelp}>
          {(field) => (
            <input {...field} name="tags" autoComplete="off" defaultValue={task?.tags.join(', ')} className={INPUT} />
          )}
        </Field>
      </div>
      {children}
    </form>
  )
}

type Found = NonNullable<ReturnType<typeof useTask>['data']>

function Comments({ project, number, comments }: { project: string; number: number; comments: Found['comments'] }) {
  const { comment } = useTaskActions(project)
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    const content = String(new FormData(form).get('text') ?? '').trim()
    if (content) comment.mutate({ number, text: content }, { onSuccess: () => form.reset() })
  }
  return (
    <section aria-label={text.tasks.comments} className="space-y-3 border-t border-line pt-5">
      <h3 className="text-sm font-semibold">{text.tasks.comments}</h3>
      {comments.map(({ id, author, at, text: content }) => (
        <article key={id} className="rounded-lg bg-sunken px-3 py-2 text-sm">
          <p className="mb-1 text-xs text-muted">
            <span className="font-medium text-ink">{author}</span> <When at={at} />
          </p>
          <p className="break-words whitespace-pre-wrap">{content}</p>
        </article>
      ))}
      <form onSubmit={submit} className="space-y-2">
        <Field label={text.tasks.comment}>
          {(field) => (
            <textarea {...field} name="text" rows={2} maxLength={20_000} required className={`${INPUT} py-2`} />
          )}
        </Field>
        {comment.error && <Failed error={comment.error} />}
        <Button type="submit" disabled={comment.isPending}>
          {text.tasks.sendComment}
        </Button>
      </form>
    </section>
  )
}

function History({ history }: { history: Found['history'] }) {
  const entries = [
    ...history.changes.map((change) => ({
      at: change.at,
      key: `c${change.at}${change.event}`,
      line: text.tasks.change(change),
      to: null,
    })),
    ...history.runs.map((run) => ({
      at: run.at,
      key: `r${run.at}${run.watcher}`,
      line: text.tasks.run(run.watcher, run.reason || run.status || ''),
      to: run.conversation,
    })),
  ].sort((one, other) => other.at - one.at)
  return (
    <section aria-label={text.tasks.history} className="space-y-2 border-t border-line pt-5">
      <h3 className="text-sm font-semibold">{text.tasks.history}</h3>
      <ul className="space-y-1 text-sm text-muted">
        {entries.map(({ at, key, line, to }) => (
          <li key={key} className="break-words">
            <When at={at} />{' '}
            {to ? (
              <Link href={`/c/${to}`} className="underline underline-offset-2">
                {line}
              </Link>
            ) : (
              line
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
