import { FolderTree } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { type Project, useProjectList, useProjectSave } from '@/data/projects'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'

/** The list of projects, with a form to create and edit them. */
export default function Projects() {
  const { data, error, refetch } = useProjectList()
  const [shown, setShown] = useState<Project | 'new' | null>(null)
  return (
    <Area
      title={text.settings.projects}
      about={text.projects.about}
      actions={
        <Button look="primary" onClick={() => setShown('new')}>
          {text.projects.new}
        </Button>
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
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
  if (!projects.length) return <Empty icon={FolderTree} title={text.projects.empty} />
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
      {projects.map((project) => (
        <li key={project.id} className="flex items-center gap-3 px-4 py-3">
          <div className="min-w-0 grow">
            <h2 className="truncate text-sm font-semibold">{project.name}</h2>
            {project.description && <p className="mt-0.5 text-sm break-words text-muted">{project.description}</p>}
            <p className="mt-0.5 font-mono text-xs break-all text-faint">
              {project.root_path ?? text.projects.noFolder}
            </p>
          </div>
          <Button onClick={() => edit(project)} aria-label={text.projects.edit(project.name)}>
            {text.common.edit}
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
    const value = (name: string) => String(given.get(name) ?? '').trim()
    const fields = {
      name: value('name'),
      description: value('description'),
      root_path: value('root_path'),
      context: value('context'),
      rules: value('rules'),
    }
    save.mutate({ id: project?.id ?? null, fields }, { onSuccess: onClose })
  }
  return (
    <Dialog title={project ? text.projects.editTitle(project.name) : text.projects.new} onClose={onClose}>
      <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
        <Field label={text.common.name}>
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
        <Field label={text.projects.description}>
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
        <Field label={text.projects.folder} about={text.projects.folderHelp}>
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
        <Field label={text.projects.context} about={text.projects.contextHelp}>
          {(field) => (
            <textarea {...field} name="context" rows={3} defaultValue={project?.context} className={`${INPUT} py-2`} />
          )}
        </Field>
        <Field label={text.projects.rules} about={text.projects.rulesHelp}>
          {(field) => (
            <textarea {...field} name="rules" rows={3} defaultValue={project?.rules} className={`${INPUT} py-2`} />
          )}
        </Field>
        {save.error && <Failed error={save.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" disabled={save.isPending}>
            {project ? text.common.save : text.projects.create}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
