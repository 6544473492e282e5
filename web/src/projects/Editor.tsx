import { type KeyboardEvent, type ReactNode, useEffect, useState } from 'react'
import { currentHash, type FileContent, isConflict, useFile, useFileSave } from '@/data/files'
import { FileHead } from '@/projects/FileView'
import { withEndings } from '@/projects/places'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Failed } from '@/ui/States'
import { notify, notifyError } from '@/ui/toasts'

/** Unsaved text of a file. */
interface Draft {
  value: string
  /** The content that was edited. */
  original: string
  hash: string | null
}

/** Drafts by project and path. They survive opening another file, but not closing the page. */
const drafts = new Map<string, Draft>()

const keyOf = (project: string, path: string) => `${project} ${path}`

export function hasDraft(project: string, path: string): boolean {
  return drafts.has(keyOf(project, path))
}

addEventListener('beforeunload', (event) => {
  if (drafts.size) event.preventDefault()
})

interface Props {
  project: string
  path: string
  content: FileContent
  back: ReactNode
  onClose: () => void
}

/** An editor for a text file. It saves only if the file is still the one that was opened; otherwise it asks. */
export function Editor({ project, path, content, back, onClose }: Props) {
  const key = keyOf(project, path)
  const [draft, setDraft] = useState<Draft>(() => drafts.get(key) ?? draftOf(content))
  const [conflict, setConflict] = useState(false)
  const { refetch } = useFile(project, path)
  const save = useFileSave(project)
  const isChanged = draft.value !== draftOf({ ...content, text: draft.original }).value

  useEffect(() => {
    if (isChanged) drafts.set(key, draft)
    else drafts.delete(key)
  }, [key, draft, isChanged])

  function close() {
    drafts.delete(key)
    onClose()
  }

  function store(hash: string | null) {
    save.mutate(
      { path, text: withEndings(draft.original, draft.value), hash },
      {
        onSuccess: () => {
          close()
          notify(text.files.saved(path))
        },
        onError: (error) => setConflict(isConflict(error)),
      },
    )
  }

  async function overwrite() {
    setConflict(false)
    await currentHash(project, path).then(store, notifyError) // a change after this is a conflict again
  }

  async function reload() {
    drafts.delete(key)
    await refetch()
    onClose()
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key.toLowerCase() !== 's' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    if (!save.isPending) store(draft.hash)
  }

  return (
    <section aria-label={path} className="flex min-h-0 min-w-0 grow flex-col">
      <FileHead path={path} back={back}>
        {isChanged && <span className="text-xs text-warn">{text.files.unsaved}</span>}
        <Button onClick={close}>{isChanged ? text.files.discard : text.common.cancel}</Button>
        <Button look="primary" disabled={save.isPending} onClick={() => store(draft.hash)}>
          {text.common.save}
        </Button>
      </FileHead>
      {save.error && !isConflict(save.error) && <Failed error={save.error} className="m-4" />}
      <textarea
        aria-label={text.files.editing(path)}
        value={draft.value}
        onChange={(event) => setDraft({ ...draft, value: event.target.value })}
        onKeyDown={onKeyDown}
        // biome-ignore lint/a11y/noAutofocus: the user has just chosen to edit
        autoFocus
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        wrap="off"
        dir="ltr"
        className="min-h-0 grow resize-none bg-surface px-4 py-3 font-mono text-[0.8125rem] leading-5 focus-visible:outline-offset-[-2px]"
      />
      {conflict && (
        <Dialog title={text.files.conflict} onClose={() => setConflict(false)}>
          <div className="space-y-4 overflow-y-auto p-5 text-sm">
            <p>{text.files.conflictAbout(path)}</p>
            <div className="flex flex-wrap justify-end gap-2 pt-1">
              <Button onClick={() => setConflict(false)}>{text.files.keepEditing}</Button>
              <Button onClick={() => void reload()}>{text.files.reload}</Button>
              <Button look="danger" onClick={() => void overwrite()}>
                {text.files.overwrite}
              </Button>
            </div>
          </div>
        </Dialog>
      )}
    </section>
  )
}

/** Return the draft of a file before any edits. A text field turns all line endings into LF. */
function draftOf({ text: original, sha256 }: FileContent): Draft {
  return { value: (original ?? '').replace(/\r\n?/g, '\n'), original: original ?? '', hash: sha256 }
}
