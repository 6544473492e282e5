import { FolderTree } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { type Project, useProjectList, useProjectSave } from '@/data/projects'
import { Area } from '@/settings/Area'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'

/** Folders of conversations: where each lies on the disk, and what agents are told in it. */
export default function Projects() {
  const { data, error, refetch } = useProjectList()
  const [shown, setShown] = useState<Project | 'new' | null>(null)
  return (
    <Area
      title="Projects"
      about="A project holds conversations. Those begun in its folder are its own, and every agent is told its context and rules."
      actions={
        <Button look="primary" onClick={() => setShown('new')}>
          New project
        </Button>
      }
    >
      {error ? (
        <Failed error={error} again={() => void refetch()} />
      ) : data ? (
        <All projects={data.data} edit={setShown} />
      ) : (
        <Loading rows={3} />
      )}
      {shown && <Form project={shown === 'new' ? null : shown} onClose={() => setShown(null)} />}
    </Area>
  )
}

function All({ projects, edit }: { projects: readonly Project[]; edit: (project: Project) => void }) {
  if (!projects.length) return <Empty icon={FolderTree} title="There is no project" />
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
      {projects.map((project) => (
        <li key={project.id} className="flex items-center gap-3 px-4 py-3">
          <div className="min-w-0 grow">
            <h2 className="truncate text-sm font-semibold">{project.name}</h2>
            {project.description && <p className="mt-0.5 text-sm break-words text-muted">{project.description}</p>}
            <p className="mt-0.5 font-mono text-xs break-all text-faint">
              {project.root_path ?? 'no folder of its own'}
            </p>
          </div>
          <Button onClick={() => edit(project)} aria-label={`Edit ${project.name}`}>
            Edit
          </Button>
        </li>
      ))}
    </ul>
  )
}

function Form({ project, onClose }: { project: Project | null; onClose: () => void }) {
  const save = useProjectSave()
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const text = (name: string) => String(given.get(name) ?? '').trim()
    const wish = {
      name: text('name'),
      description: text('description'),
      root_path: text('root_path'),
      context: text('context'),
      rules: text('rules'),
    }
    save.mutate({ id: project?.id ?? null, wish }, { onSuccess: onClose })
  }
  return (
    <Dialog title={project ? `The project “${project.name}”` : 'New project'} onClose={onClose}>
      <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
        <Field label="Name">
          {(field) => (
            <input
              {...field}
              name="name"
              required
              maxLength={200}
              autoComplete="off"
              defaultValue={project?.name}
              className={INPUT}
            />
          )}
        </Field>
        <Field label="Description">
          {(field) => (
            <input
              {...field}
              name="description"
              autoComplete="off"
              defaultValue={project?.description}
              className={INPUT}
            />
          )}
        </Field>
        <Field label="Folder" about="Absolute, on the machine of this server; empty for none.">
          {(field) => (
            <input
              {...field}
              name="root_path"
              autoComplete="off"
              spellCheck={false}
              defaultValue={project?.root_path ?? ''}
              className={INPUT}
            />
          )}
        </Field>
        <Field label="Context" about="What agents are told of it.">
          {(field) => (
            <textarea {...field} name="context" rows={3} defaultValue={project?.context} className={`${INPUT} py-2`} />
          )}
        </Field>
        <Field label="Rules" about="What agents are held to in it.">
          {(field) => (
            <textarea {...field} name="rules" rows={3} defaultValue={project?.rules} className={`${INPUT} py-2`} />
          )}
        </Field>
        {save.error && <Failed error={save.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" look="primary" disabled={save.isPending}>
            {project ? 'Save' : 'Make the project'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
