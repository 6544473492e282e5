import { FolderTree } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { type Project, useProjectDelete, useProjectList, useProjectSave } from '@/data/projects'
import { fileHref } from '@/projects/places'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { notify } from '@/ui/toasts'
import { When } from '@/ui/When'

/** The list of projects, with dialogs to create, edit and delete them. */
export default function Projects() {
  const { data, error, refetch } = useProjectList()
  const [shown, setShown] = useState<Project | 'new' | null>(null)
  const [deleting, setDeleting] = useState<Project | null>(null)
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
        <All projects={data.data} edit={setShown} remove={setDeleting} />
      ) : (
        <Loading rows={3} />
      )}
      {shown && <ProjectForm project={shown === 'new' ? null : shown} onClose={() => setShown(null)} />}
      {deleting && data?.data[0] && (
        <ProjectDeletion project={deleting} target={data.data[0].name} onClose={() => setDeleting(null)} />
      )}
    </Area>
  )
}

interface AllProps {
  /** The default project first. It can't be deleted. */
  projects: readonly Project[]
  edit: (project: Project) => void
  remove: (project: Project) => void
}

function All({ projects, edit, remove }: AllProps) {
  if (!projects.length) return <Empty icon={FolderTree} title={text.projects.empty} />
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
      {projects.map((project, at) => (
        <li key={project.id} className="flex flex-wrap items-center gap-3 px-4 py-3">
          <div className="min-w-0 grow basis-48">
            <h2 className="truncate text-sm font-semibold">{project.name}</h2>
            {project.description && <p className="mt-0.5 text-sm break-words text-muted">{project.description}</p>}
            <p className="mt-0.5 font-mono text-xs break-all text-faint">
              {project.root_path ?? text.projects.noFolder}
            </p>
            {project.updated_at > 0 && (
              <p className="mt-0.5 text-xs text-faint">
                {text.projects.updated} <When at={project.updated_at} />
              </p>
            )}
          </div>
          {project.root_path && (
            <Link href={fileHref(project.id)} aria-label={text.files.of(project.name)} className={LINK}>
              {text.files.files}
            </Link>
          )}
          <Link
            href={`/settings/tasks?project=${encodeURIComponent(project.id)}`}
            aria-label={text.tasks.of(project.name)}
            className={LINK}
          >
            {text.settings.tasks}
          </Link>
          <Button onClick={() => edit(project)} aria-label={text.projects.edit(project.name)}>
            {text.common.edit}
          </Button>
          {at > 0 && (
            <Button look="danger" onClick={() => remove(project)} aria-label={text.projects.delete(project.name)}>
              {text.common.delete}
            </Button>
          )}
        </li>
      ))}
    </ul>
  )
}

const LINK = 'inline-flex min-h-9 items-center px-2 text-sm underline underline-offset-2 max-md:min-h-11'

interface DeletionProps {
  project: Project
  /** Name of the project that the conversations move to. */
  target: string
  onClose: () => void
  onDeleted?: () => void
}

/** Ask for confirmation before a project is deleted. */
export function ProjectDeletion({ project, target, onClose, onDeleted }: DeletionProps) {
  const remove = useProjectDelete()
  function submit() {
    remove.mutate(project.id, {
      onSuccess: ({ conversations }) => {
        onClose()
        onDeleted?.()
        notify(text.projects.deleted(project.name, conversations))
      },
    })
  }
  return (
    <Dialog title={text.projects.deleteTitle(project.name)} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        <p>{text.projects.deleteAbout(target)}</p>
        {project.root_path && (
          <p>
            {text.projects.deleteFolder} <code className="font-mono text-xs break-all">{project.root_path}</code>
          </p>
        )}
        {remove.error && <Failed error={remove.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button look="danger" disabled={remove.isPending} onClick={submit}>
            {text.projects.deleteSubmit}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** A dialog to change a project, or to create one. */
export function ProjectForm({ project, onClose }: { project: Project | null; onClose: () => void }) {
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
