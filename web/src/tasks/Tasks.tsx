import { ListTodo, MessageSquare } from 'lucide-react'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useProjects } from '@/data/projects'
import { MOST, STATUSES, type Task, type TaskStatus, useTaskActions, useTasks } from '@/data/tasks'
import { Area } from '@/settings/Area'
import { NewTask, TaskDialog } from '@/tasks/TaskDialog'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'

/** The tasks of a project by status. The address names the project and the open task. */
export default function Tasks() {
  const projects = useProjects()
  const [search, setSearch] = useSearchParams()
  const [adding, setAdding] = useState(false)
  const [archived, setArchived] = useState(false)
  const project = search.get('project') ?? projects[0]?.id
  const open = Number(search.get('task')) || null
  const { data, error, refetch } = useTasks(project, archived)
  const show = (task: number | null) =>
    setSearch({ ...(project && { project }), ...(task && { task: String(task) }) }, { replace: task === null })
  return (
    <Area
      title={text.settings.tasks}
      about={text.tasks.about}
      actions={
        <>
          <select
            aria-label={text.tasks.project}
            value={project}
            onChange={(event) => setSearch({ project: event.target.value })}
            className={`${INPUT} max-w-56`}
          >
            {projects.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
          <Button look="primary" disabled={!project} onClick={() => setAdding(true)}>
            {text.tasks.new}
          </Button>
        </>
      }
    >
      <label className="mb-4 flex min-h-9 w-fit items-center gap-2 text-sm max-md:min-h-11">
        <input type="checkbox" checked={archived} onChange={(event) => setArchived(event.target.checked)} />
        {text.tasks.showArchived}
      </label>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data || !project ? (
        <Loading rows={3} />
      ) : data.data.length ? (
        <Groups project={project} tasks={data.data} more={data.next_cursor !== null} open={show} />
      ) : (
        <Empty icon={ListTodo} title={text.tasks.empty} />
      )}
      {adding && project && <NewTask project={project} onClose={() => setAdding(false)} />}
      {open && project && <TaskDialog key={open} project={project} number={open} onClose={() => show(null)} />}
    </Area>
  )
}

interface GroupsProps {
  project: string
  tasks: readonly Task[]
  more: boolean
  open: (number: number) => void
}

function Groups({ project, tasks, more, open }: GroupsProps) {
  const { change } = useTaskActions(project)
  return (
    <div className="space-y-6">
      {change.error && <Failed error={change.error} />}
      {STATUSES.map((status) => {
        const own = tasks.filter((task) => task.status === status)
        if (!own.length) return null
        return (
          <section key={status} aria-label={text.tasks.statuses[status]}>
            <h2 className="mb-2 text-sm font-semibold text-muted">
              {text.tasks.statuses[status]} <span className="font-normal">({own.length})</span>
            </h2>
            <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
              {own.map((task) => (
                <li key={task.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
                  <Row task={task} open={() => open(task.number)} />
                  <StatusSelect
                    task={task}
                    onChange={(status) => change.mutate({ number: task.number, fields: { status } })}
                  />
                </li>
              ))}
            </ul>
          </section>
        )
      })}
      {more && <p className="text-sm text-muted">{text.tasks.more(MOST)}</p>}
    </div>
  )
}

function Row({ task, open }: { task: Task; open: () => void }) {
  return (
    <div className="min-w-0 grow basis-56">
      <button
        type="button"
        onClick={open}
        className="min-h-9 w-full cursor-pointer text-left text-sm font-medium break-words hover:underline max-md:min-h-11"
      >
        <span className="mr-2 font-normal text-faint">#{task.number}</span>
        {task.title}
      </button>
      <div className="flex flex-wrap items-center gap-1.5 text-xs text-muted empty:hidden">
        {isOverdue(task) ? (
          <Badge look="danger">{text.tasks.overdue(task.due)}</Badge>
        ) : (
          task.due && <span>{text.tasks.dueOn(task.due)}</span>
        )}
        {task.assignee && <span className="break-all">{text.tasks.assignedTo(task.assignee)}</span>}
        {task.tags.map((tag) => (
          <Badge key={tag} className="max-w-full truncate">
            {tag}
          </Badge>
        ))}
        {task.comments > 0 && (
          <span className="inline-flex items-center gap-1">
            <MessageSquare size={12} aria-hidden />
            {text.tasks.commentCount(task.comments)}
          </span>
        )}
      </div>
    </div>
  )
}

function StatusSelect({ task, onChange }: { task: Task; onChange: (status: TaskStatus) => void }) {
  return (
    <select
      aria-label={text.tasks.statusOf(task.number)}
      value={task.status}
      onChange={(event) => onChange(event.target.value as TaskStatus)}
      className={`${INPUT} w-auto!`}
    >
      {STATUSES.map((status) => (
        <option key={status} value={status}>
          {text.tasks.statuses[status]}
        </option>
      ))}
    </select>
  )
}

/** Return whether an open task is past its due date, in local time. */
function isOverdue({ due, status }: Task): boolean {
  const now = new Date()
  const today = new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10)
  return due !== '' && due < today && status !== 'done' && status !== 'archived'
}
