import { Brain, FileText, Pencil, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import type { Tagged } from '@/api/client'
import { type MemoryFile, type MemoryText, useMemoryActions, useMemoryFiles, useMemoryText } from '@/data/memory'
import { Area } from '@/settings/Area'
import { Documents } from '@/settings/Documents'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { notify } from '@/ui/toasts'
import { When } from '@/ui/When'

/** The memory files of agents, and the documents that agents can search. */
export default function Memory() {
  const { data, error, refetch } = useMemoryFiles()
  const [shown, setShown] = useState<string | null>(null)
  const [deleting, setDeleting] = useState<string | null>(null)
  return (
    <Area
      title={text.settings.memory}
      about={text.memory.about}
      actions={
        <Button look="primary" onClick={() => setShown('')}>
          {text.memory.newFile}
        </Button>
      }
    >
      <div className="space-y-8">
        <section aria-labelledby="memory-files">
          <h2 id="memory-files" className="mb-2 text-sm font-semibold">
            {text.memory.files}
          </h2>
          {error ? (
            <Failed error={error} retry={() => void refetch()} />
          ) : data ? (
            <Files files={data.data} edit={setShown} remove={setDeleting} />
          ) : (
            <Loading rows={3} />
          )}
        </section>
        <Documents />
      </div>
      {shown !== null && <Editor name={shown} onClose={() => setShown(null)} />}
      {deleting !== null && <Deletion name={deleting} onClose={() => setDeleting(null)} />}
    </Area>
  )
}

interface FilesProps {
  files: readonly MemoryFile[]
  edit: (name: string) => void
  remove: (name: string) => void
}

function Files({ files, edit, remove }: FilesProps) {
  if (!files.length)
    return (
      <Empty icon={Brain} title={text.memory.emptyFiles}>
        {text.memory.emptyFilesAbout}
      </Empty>
    )
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
      {files.map((file) => (
        <li key={file.name} className="flex items-center gap-2 px-4 py-2">
          <FileText size={16} aria-hidden className="shrink-0 text-muted" />
          <div className="min-w-0 grow">
            <p className="font-mono text-sm break-all">{file.name}</p>
            <p className="flex flex-wrap items-center gap-2 text-xs text-muted">
              <When at={file.changed_at} />
              {file.hidden > 0 && <Badge look="warn">{text.memory.hidden(file.hidden)}</Badge>}
              {file.problem && <span className="text-danger">{file.problem}</span>}
            </p>
          </div>
          <IconButton label={text.memory.edit(file.name)} onClick={() => edit(file.name)}>
            <Pencil size={16} aria-hidden />
          </IconButton>
          <IconButton label={text.memory.remove(file.name)} onClick={() => remove(file.name)}>
            <Trash2 size={16} aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  )
}

/** A dialog to edit a memory file. With an empty name, it creates a file. */
function Editor({ name, onClose }: { name: string; onClose: () => void }) {
  const { data, error, isFetchedAfterMount } = useMemoryText(name)
  const isLoading = name !== '' && !isFetchedAfterMount
  return (
    <Dialog title={name ? text.memory.edit(name) : text.memory.newFile} onClose={onClose}>
      {error ? (
        <Failed error={error} className="m-5" />
      ) : isLoading ? (
        <Loading rows={4} className="m-5" />
      ) : (
        <EditorForm name={name} loaded={data ?? null} onClose={onClose} />
      )}
    </Dialog>
  )
}

interface EditorFormProps {
  name: string
  loaded: Tagged<MemoryText> | null
  onClose: () => void
}

function EditorForm({ name, loaded, onClose }: EditorFormProps) {
  const { save } = useMemoryActions()
  const [shown] = useState(loaded) // later fetches must not change the ETag of the text that is edited
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const file = name || String(given.get('name')).trim()
    save.mutate(
      { name: file, text: String(given.get('text')).replaceAll('\r\n', '\n'), etag: shown?.etag ?? null },
      {
        onSuccess: () => {
          onClose()
          notify(text.memory.saved(file))
        },
      },
    )
  }
  return (
    <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
      {!name && (
        <Field label={text.memory.name} about={text.memory.nameHelp}>
          {(field) => (
            <input {...field} name="name" required defaultValue="home/MEMORY.md" className={`${INPUT} font-mono`} />
          )}
        </Field>
      )}
      {shown && shown.value.hidden.length > 0 && (
        <p role="alert" className="text-sm text-danger">
          {text.memory.hiddenAbout([...new Set(shown.value.hidden)].join(', '))}
        </p>
      )}
      <Field label={text.memory.content}>
        {(field) => (
          <textarea
            {...field}
            name="text"
            rows={14}
            defaultValue={shown?.value.text}
            spellCheck={false}
            className={`${INPUT} py-2 font-mono`}
          />
        )}
      </Field>
      {save.error && <Failed error={save.error} />}
      <div className="flex justify-end gap-2 pt-1">
        <Button look="quiet" onClick={onClose}>
          {text.common.cancel}
        </Button>
        <Button type="submit" look="primary" disabled={save.isPending}>
          {text.memory.save}
        </Button>
      </div>
    </form>
  )
}

function Deletion({ name, onClose }: { name: string; onClose: () => void }) {
  const { remove } = useMemoryActions()
  return (
    <Dialog title={text.memory.removeTitle(name)} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        <p>{text.memory.removeAbout}</p>
        {remove.error && <Failed error={remove.error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button look="danger" disabled={remove.isPending} onClick={() => remove.mutate(name, { onSuccess: onClose })}>
            {text.common.delete}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
