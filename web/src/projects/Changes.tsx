import { clsx } from 'clsx'
import { GitBranch, Minus, Plus } from 'lucide-react'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import { Diff } from '@/conversation/tools/Diff'
import { hunksOf, proposed } from '@/conversation/tools/diff'
import { type ChangedFile, type GitStatus, useFile, useGitActions, useGitDiff, useGitStatus } from '@/data/files'
import { FileHead } from '@/projects/FileView'
import { changesHref, fileHref } from '@/projects/places'
import { Worktrees } from '@/projects/Worktrees'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { notify } from '@/ui/toasts'

interface Props {
  project: string
  /** The path of the file whose diff is shown, and whether it is that of its staged changes. */
  path: string
  staged: boolean
}

/** The changed files of a project, with buttons to stage and unstage them, the form to commit, and the worktrees. */
export function Changes({ project, path, staged, worktree }: Props & { worktree: string }) {
  const { data, error, refetch } = useGitStatus(project)
  if (error) return <Failed error={error} retry={() => void refetch()} className="m-3" />
  if (!data) return <Loading rows={5} className="m-3" />
  const { status } = data
  if (!status)
    return (
      <div className="p-3">
        <Empty icon={GitBranch} title={text.files.noRepository}>
          {text.files.noRepositoryAbout}
        </Empty>
      </div>
    )
  return (
    <div className="px-3 pb-4">
      <p className="flex items-center gap-2 px-1 py-2 text-sm text-muted">
        <GitBranch size={15} aria-hidden />
        <span className="min-w-0 truncate font-mono text-[0.8125rem]">
          {status.branch ?? status.commit?.slice(0, 8) ?? text.files.detached}
        </span>
        {(status.ahead > 0 || status.behind > 0) && (
          <span className="shrink-0 text-xs text-faint">{text.files.aheadBehind(status.ahead, status.behind)}</span>
        )}
      </p>
      <Lists project={project} status={status} path={path} staged={staged} />
      <Commit project={project} count={status.staged_count} />
      <Worktrees project={project} shown={worktree} />
    </div>
  )
}

function Lists({ project, status, path, staged }: { status: GitStatus } & Props) {
  const { stage, unstage } = useGitActions(project)
  const error = stage.error ?? unstage.error
  const pending = stage.isPending || unstage.isPending
  if (!status.staged_count && !status.unstaged_count && !status.untracked_count)
    return <p className="px-1 py-4 text-sm text-muted">{text.files.clean}</p>
  const groups = [
    { title: text.files.staged, files: status.staged, count: status.staged_count, isStaged: true },
    { title: text.files.unstaged, files: status.unstaged, count: status.unstaged_count, isStaged: false },
    { title: text.files.untracked, files: status.untracked, count: status.untracked_count, isStaged: false },
  ]
  return (
    <>
      {error && <Failed error={error} className="mb-2" />}
      {groups
        .filter(({ count }) => count > 0)
        .map(({ title, files, count, isStaged }) => {
          const act = isStaged ? unstage : stage
          const verb = isStaged ? text.files.unstage : text.files.stage
          return (
            <section key={title} aria-label={title} className="mb-3">
              <div className="flex items-center justify-between gap-2 px-1">
                <h2 className="text-xs font-semibold text-muted">{text.files.group(title, count)}</h2>
                <Button
                  look="quiet"
                  disabled={pending}
                  aria-label={text.common.labeled(verb, text.files.all(title))}
                  onClick={() => act.mutate(files.length < count ? [] : files.map((file) => file.path))}
                >
                  {text.files.allOf(verb)}
                </Button>
              </div>
              <ul>
                {files.map((file) => (
                  <ChangeEntry
                    key={file.path}
                    project={project}
                    file={file}
                    staged={isStaged}
                    shown={file.path === path && isStaged === staged}
                    act={
                      <IconButton
                        label={`${verb}: ${file.path}`}
                        disabled={pending}
                        onClick={() => act.mutate(file.before ? [file.before, file.path] : [file.path])}
                      >
                        {isStaged ? <Minus size={15} aria-hidden /> : <Plus size={15} aria-hidden />}
                      </IconButton>
                    }
                  />
                ))}
              </ul>
              {files.length < count && (
                <p className="px-1 text-xs text-faint">{text.files.rest(count - files.length)}</p>
              )}
            </section>
          )
        })}
    </>
  )
}

const LOOKS: Partial<Record<ChangedFile['change'], string>> = {
  added: 'text-good',
  untracked: 'text-good',
  deleted: 'text-danger',
  conflict: 'text-danger',
}

interface EntryProps {
  project: string
  file: ChangedFile
  staged: boolean
  shown: boolean
  act: ReactNode
}

function ChangeEntry({ project, file, staged, shown, act }: EntryProps) {
  const name = file.path.slice(file.path.replace(/\/$/, '').lastIndexOf('/') + 1)
  const folder = file.path.slice(0, file.path.length - name.length).replace(/\/$/, '')
  return (
    <li className={clsx('flex items-center gap-1 rounded-lg pl-1 hover:bg-hover', shown && 'bg-accent-soft')}>
      <Link
        href={changesHref(project, file.path, staged)}
        aria-current={shown ? 'true' : undefined}
        title={file.before ? text.files.renamed(file.before, file.path) : file.path}
        className="flex min-h-8 min-w-0 grow items-baseline gap-2 rounded-md px-1 py-1.5 text-sm max-md:min-h-11 max-md:items-center"
      >
        <span
          className={clsx('w-4 shrink-0 text-center font-mono text-xs', LOOKS[file.change] ?? 'text-warn')}
          aria-hidden
        >
          {text.files.letters[file.change]}
        </span>
        <span className="sr-only">{text.files.changes[file.change]}</span>
        <span className={clsx('min-w-0 truncate', file.change === 'deleted' && 'line-through')}>{name}</span>
        <span className="min-w-0 shrink-[4] truncate text-xs text-faint">{folder}</span>
      </Link>
      {act}
    </li>
  )
}

function Commit({ project, count }: { project: string; count: number }) {
  const { commit } = useGitActions(project)
  const [message, setMessage] = useState('')
  function submit(event: FormEvent) {
    event.preventDefault()
    commit.mutate(message, {
      onSuccess: (made) => {
        setMessage('')
        notify(text.files.committed(made.commit.slice(0, 8)))
      },
    })
  }
  return (
    <form onSubmit={submit} className="space-y-2 border-t border-line pt-3">
      <Field label={text.files.message} about={count ? undefined : text.files.nothingStaged}>
        {(field) => (
          <textarea
            {...field}
            value={message}
            onChange={(event) => setMessage(event.target.value)}
            rows={3}
            required
            maxLength={20_000}
            className={`${INPUT} py-2`}
          />
        )}
      </Field>
      {commit.error && <Failed error={commit.error} className="whitespace-pre-wrap" />}
      <Button type="submit" look="primary" className="w-full" disabled={!count || !message.trim() || commit.isPending}>
        {count ? text.files.commitFiles(count) : text.files.commit}
      </Button>
    </form>
  )
}

/** The diff of a changed file. For a file that Git does not track, all of its lines. */
export function ChangeDiff({ project, path, staged, back }: Props & { back: ReactNode }) {
  const { data: git } = useGitStatus(project)
  const isUntracked = !staged && git?.status?.untracked.some((file) => file.path === path)
  const isFolder = path.endsWith('/')
  const diff = useGitDiff(project, git && !isUntracked ? path : '', staged)
  const file = useFile(project, isUntracked && !isFolder ? path : '')
  const error = diff.error ?? file.error
  const lines = isUntracked
    ? file.data && proposed('write_file', { content: file.data.text ?? '' })
    : diff.data && hunksOf(diff.data.diff)
  return (
    <section aria-label={path} className="flex min-h-0 min-w-0 grow flex-col">
      <FileHead path={path} back={back}>
        {!isFolder && (
          <Link
            href={fileHref(project, path)}
            className="inline-flex min-h-9 items-center px-2 text-sm underline underline-offset-2 max-md:min-h-11"
          >
            {text.files.open}
          </Link>
        )}
      </FileHead>
      <div className="min-h-0 grow overflow-y-auto">
        {error ? (
          <Failed error={error} className="m-4" />
        ) : isFolder ? (
          <p className="p-4 text-sm text-muted">{text.files.untrackedFolder}</p>
        ) : !lines ? (
          <Loading rows={6} className="m-4" />
        ) : lines.length ? (
          <Diff key={`${path} ${staged}`} lines={lines} tall />
        ) : (
          <p className="p-4 text-sm text-muted">{text.files.noDiff}</p>
        )}
        {diff.data?.cut && <p className="p-4 text-sm text-muted">{text.files.cut}</p>}
      </div>
    </section>
  )
}
