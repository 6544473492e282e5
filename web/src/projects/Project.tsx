import { clsx } from 'clsx'
import { ArrowLeft, Ellipsis, FilePlus, FolderOpen, Pencil, Trash2 } from 'lucide-react'
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { Link, useLocation, useParams, useSearchParams } from 'wouter'
import { deferred } from '@/app/deferred'
import { arriving, useTitle } from '@/app/title'
import { useFileSave, useFileSearch, useGitStatus, useProject } from '@/data/files'
import { type Project as ProjectFacts, useProjects } from '@/data/projects'
import { ChangeDiff, Changes } from '@/projects/Changes'
import { FileView } from '@/projects/FileView'
import { changesHref, fileHref } from '@/projects/places'
import { Tree } from '@/projects/Tree'
import { WorktreeDiff } from '@/projects/Worktrees'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Menu } from '@/ui/Menu'
import { Empty, Failed, Loading } from '@/ui/States'

const ProjectForm = deferred(async () => ({ default: (await import('@/settings/Projects')).ProjectForm }))
const ProjectDeletion = deferred(async () => ({ default: (await import('@/settings/Projects')).ProjectDeletion }))

/** The files and changes of a project. The address names the open file, its line, or the shown diff. */
export default function Project() {
  const id = decodeURIComponent(useParams<{ id: string }>().id)
  const { data, error, refetch } = useProject(id)
  useTitle(data?.name ?? text.settings.projects)
  if (error)
    return (
      <main className="grow p-6">
        <Failed error={error} retry={() => void refetch()} />
      </main>
    )
  if (!data)
    return (
      <main className="grow p-6">
        <Loading rows={6} />
      </main>
    )
  return <Place project={data} />
}

function Place({ project }: { project: ProjectFacts }) {
  const { id, root_path: root } = project
  const [search, setSearch] = useSearchParams()
  const path = search.get('path') ?? ''
  const line = Number(search.get('line')) || 0
  const view = search.get('view')
  const isWorktree = view === 'worktree'
  const isChanges = view === 'changes' || isWorktree
  const staged = search.get('staged') === 'true'
  const goTo = (to: number) => setSearch({ path, line: String(to) })
  const back = (
    <Link
      href={isChanges ? changesHref(id) : fileHref(id)}
      aria-label={isChanges ? text.files.backToChanges : text.files.backToTree}
      className="grid size-11 shrink-0 place-items-center rounded-lg hover:bg-hover md:hidden"
    >
      <ArrowLeft size={18} aria-hidden />
    </Link>
  )
  return (
    <main className="flex min-h-0 min-w-0 grow flex-col">
      <PlaceHead project={project} isChanges={isChanges} />
      {root === null ? (
        <div className="p-6">
          <Empty icon={FolderOpen} title={text.files.noFolder}>
            {text.files.noFolderAbout}
          </Empty>
        </div>
      ) : (
        <div className="flex min-h-0 grow">
          <div
            className={clsx(
              'min-h-0 w-full shrink-0 overflow-y-auto border-line md:w-72 md:border-r',
              path && 'max-md:hidden',
            )}
          >
            {isChanges ? (
              <Changes project={id} path={isWorktree ? '' : path} staged={staged} worktree={isWorktree ? path : ''} />
            ) : (
              <Files project={id} path={path} />
            )}
          </div>
          <div className={clsx('flex min-h-0 min-w-0 grow', !path && 'max-md:hidden')}>
            {!path ? (
              <p className="m-auto p-6 text-sm text-muted">{isChanges ? text.files.chooseChange : text.files.choose}</p>
            ) : isWorktree ? (
              <WorktreeDiff key={path} project={id} name={path} back={back} />
            ) : isChanges ? (
              <ChangeDiff project={id} path={path} staged={staged} back={back} />
            ) : (
              <FileView key={path} project={id} path={path} line={line} goTo={goTo} back={back} />
            )}
          </div>
        </div>
      )}
    </main>
  )
}

function PlaceHead({ project, isChanges }: { project: ProjectFacts; isChanges: boolean }) {
  const { id, root_path: root } = project
  const [dialog, setDialog] = useState<'edit' | 'delete' | null>(null)
  const [first] = useProjects()
  const [, go] = useLocation()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (arriving()) heading.current?.focus({ preventScroll: true })
  }, [])
  const { data } = useGitStatus(id, root !== null)
  const status = data?.status
  const changed = status ? status.staged_count + status.unstaged_count + status.untracked_count : 0
  const edit = { label: text.files.edit, icon: <Pencil size={15} aria-hidden />, act: () => setDialog('edit') }
  const remove = {
    label: text.files.delete,
    icon: <Trash2 size={15} aria-hidden />,
    danger: true,
    act: () => setDialog('delete'),
  }
  return (
    <header className="flex min-h-12 shrink-0 items-center gap-x-3 border-b border-line px-3 max-md:flex-wrap max-md:pt-2 sm:px-4">
      <h1 ref={heading} tabIndex={-1} className="min-w-0 truncate text-sm font-semibold outline-none max-md:w-full">
        {project.name}
      </h1>
      <p title={root ?? ''} className="hidden min-w-0 truncate font-mono text-xs text-faint lg:block">
        {root}
      </p>
      <span className="grow max-md:hidden" />
      {root !== null && (
        <nav aria-label={text.files.views} className="flex shrink-0 gap-1 max-md:mr-auto">
          <Tab href={fileHref(id)} current={!isChanges}>
            {text.files.files}
          </Tab>
          <Tab href={changesHref(id)} current={isChanges}>
            {changed ? text.files.group(text.files.changesTitle, changed) : text.files.changesTitle}
          </Tab>
        </nav>
      )}
      <Menu
        label={text.files.more}
        icon={<Ellipsis size={18} aria-hidden />}
        items={first && first.id !== id ? [edit, remove] : [edit]}
      />
      {dialog === 'edit' && <ProjectForm project={project} onClose={() => setDialog(null)} />}
      {dialog === 'delete' && first && (
        <ProjectDeletion
          project={project}
          target={first.name}
          onClose={() => setDialog(null)}
          onDeleted={() => go('/settings/projects')}
        />
      )}
    </header>
  )
}

function Tab({ href, current, children }: { href: string; current: boolean; children: ReactNode }) {
  return (
    <Link
      href={href}
      aria-current={current ? 'page' : undefined}
      className="inline-flex min-h-9 items-center rounded-lg px-3 text-sm text-muted hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium aria-[current=page]:text-ink max-md:min-h-11"
    >
      {children}
    </Link>
  )
}

/** The tree, with a field to find files by name instead. */
function Files({ project, path }: { project: string; path: string }) {
  const [query, setQuery] = useState('')
  const [adding, setAdding] = useState(false)
  const [, go] = useLocation()
  return (
    <>
      <div className="sticky top-0 z-10 flex items-center gap-1 bg-surface p-2">
        <input
          type="search"
          aria-label={text.files.find}
          placeholder={text.files.find}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          className={INPUT}
        />
        <IconButton label={text.files.newFile} onClick={() => setAdding(true)}>
          <FilePlus size={16} aria-hidden />
        </IconButton>
      </div>
      {query.trim() ? (
        <Found project={project} query={query.trim()} />
      ) : (
        <Tree project={project} shown={path} choose={(chosen) => go(fileHref(project, chosen))} />
      )}
      {adding && <NewFile project={project} onClose={() => setAdding(false)} />}
    </>
  )
}

function Found({ project, query }: { project: string; query: string }) {
  const { data, error } = useFileSearch(project, query)
  if (error) return <Failed error={error} className="m-3" />
  if (!data) return <Loading rows={3} className="m-3" />
  const files = data.data.filter(({ type }) => type === 'file')
  if (!files.length) return <p className="px-4 py-3 text-sm text-muted">{text.files.notFound}</p>
  return (
    <ul aria-label={text.files.found} className="px-2 pb-3">
      {files.map(({ path }) => (
        <li key={path}>
          <Link
            href={fileHref(project, path)}
            className="block min-h-8 rounded-lg px-2 py-1.5 font-mono text-[0.8125rem] break-all hover:bg-hover max-md:min-h-11"
          >
            {path}
          </Link>
        </li>
      ))}
    </ul>
  )
}

function NewFile({ project, onClose }: { project: string; onClose: () => void }) {
  const save = useFileSave(project)
  const [, go] = useLocation()
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const path = String(new FormData(event.currentTarget).get('path')).trim()
    save.mutate(
      { path, text: '', hash: null },
      {
        onSuccess: (made) => {
          onClose()
          go(fileHref(project, made.path))
        },
      },
    )
  }
  return (
    <Dialog title={text.files.newFile} onClose={onClose}>
      <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
        <Field label={text.files.path} about={text.files.pathHelp}>
          {(field) => (
            <input
              {...field}
              name="path"
              required
              autoComplete="off"
              spellCheck={false}
              className={`${INPUT} font-mono`}
            />
          )}
        </Field>
        {save.error && <Failed error={save.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button look="quiet" onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" disabled={save.isPending}>
            {text.files.create}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
