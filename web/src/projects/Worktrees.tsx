import { FolderGit2, Trash2 } from 'lucide-react'
import { Fragment, type ReactNode, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { Problem } from '@/api/client'
import { Diff, DiffCount } from '@/conversation/tools/Diff'
import { filesOf } from '@/conversation/tools/diff'
import { useWorktreeDiff, useWorktreeRemoval, useWorktrees, type Worktree } from '@/data/files'
import { FileHead } from '@/projects/FileView'
import { changesHref, worktreeHref } from '@/projects/places'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Failed, Loading } from '@/ui/States'
import { useScrollable } from '@/ui/scrollable'
import { notify } from '@/ui/toasts'

const words = text.worktrees

/** The worktrees in which agents work on the project. Nothing if there are none, or if the user may not see them. */
export function Worktrees({ project, shown }: { project: string; shown: string }) {
  const { data, error } = useWorktrees(project)
  const [removing, setRemoving] = useState<Worktree | null>(null)
  if (error) return error instanceof Problem && error.status === 403 ? null : <Failed error={error} />
  if (!data?.data.length) return null
  return (
    <section aria-label={words.title} className="mt-4 border-t border-line pt-3">
      <h2 className="px-1 text-xs font-semibold text-muted">{text.files.group(words.title, data.data.length)}</h2>
      <ul>
        {data.data.map((worktree) => (
          <li
            key={worktree.name}
            className={`flex items-center gap-1 rounded-lg pl-1 hover:bg-hover ${worktree.name === shown ? 'bg-accent-soft' : ''}`}
          >
            <Link
              href={worktreeHref(project, worktree.name)}
              aria-current={worktree.name === shown ? 'true' : undefined}
              title={worktree.path}
              className="flex min-h-8 min-w-0 grow items-center gap-2 rounded-md px-1 py-1.5 text-sm max-md:min-h-11"
            >
              <FolderGit2 size={15} aria-hidden className="shrink-0 text-faint" />
              <span className="min-w-0 truncate">{worktree.name}</span>
              <span className="shrink-0 text-xs text-faint">{words.work(worktree.changes, worktree.commits)}</span>
            </Link>
            <IconButton label={words.remove(worktree.name)} onClick={() => setRemoving(worktree)}>
              <Trash2 size={15} aria-hidden />
            </IconButton>
          </li>
        ))}
      </ul>
      {removing && <Removal project={project} worktree={removing} onClose={() => setRemoving(null)} />}
    </section>
  )
}

interface RemovalProps {
  project: string
  worktree: Worktree
  onClose: () => void
}

function Removal({ project, worktree, onClose }: RemovalProps) {
  const remove = useWorktreeRemoval(project)
  const [, go] = useLocation()
  const { name, branch, changes } = worktree
  function submit() {
    remove.mutate(
      { name, force: changes > 0 },
      {
        onSuccess: (removed) => {
          onClose()
          notify(removed.branch_kept ? words.removedKept(name, branch) : words.removed(name))
          go(changesHref(project))
        },
      },
    )
  }
  return (
    <Dialog title={words.removeTitle(name)} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        <p>{words.removeAbout}</p>
        {changes > 0 && <p className="text-danger">{words.lost(changes)}</p>}
        {remove.error && <Failed error={remove.error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button look="danger" disabled={remove.isPending} onClick={submit}>
            {words.removeNow}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** The diff of a worktree, file by file. */
export function WorktreeDiff({ project, name, back }: { project: string; name: string; back: ReactNode }) {
  const { data, error } = useWorktreeDiff(project, name)
  const files = data && filesOf(data.diff)
  const box = useRef<HTMLDivElement>(null)
  const region = useScrollable(box, text.tools.changes)
  return (
    <section aria-label={name} className="flex min-h-0 min-w-0 grow flex-col">
      <FileHead path={name} back={back} />
      <div ref={box} {...region} className="min-h-0 grow overflow-y-auto pb-4">
        {error ? (
          <Failed error={error} className="m-4" />
        ) : !data || !files ? (
          <Loading rows={6} className="m-4" />
        ) : (
          <>
            {!files.length && !data.untracked.length && <p className="p-4 text-sm text-muted">{words.empty}</p>}
            {files.map(({ path, lines }) => (
              <Fragment key={path}>
                <h2 className="flex gap-2 px-4 pt-4 pb-1 font-mono text-xs font-semibold">
                  <span className="min-w-0 break-all">{path}</span>
                  <DiffCount lines={lines} />
                </h2>
                <Diff lines={lines} tall />
              </Fragment>
            ))}
            {data.cut && <p className="p-4 text-sm text-muted">{words.cut(name)}</p>}
            {data.untracked.length > 0 && (
              <div className="px-4 pt-4">
                <h2 className="text-xs font-semibold text-muted">
                  {text.files.group(text.files.untracked, data.untracked.length)}
                </h2>
                <ul className="mt-1 font-mono text-[0.8125rem]">
                  {data.untracked.map((path) => (
                    <li key={path} className="py-0.5 break-all">
                      {path}
                    </li>
                  ))}
                </ul>
              </div>
            )}
          </>
        )}
      </div>
    </section>
  )
}
