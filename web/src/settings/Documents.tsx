import { Files, Trash2 } from 'lucide-react'
import { type FormEvent, useRef, useState } from 'react'
import { type Source, useDocuments, useKnowledgeSearch, useSourceActions, useSources } from '@/data/memory'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { Field, INPUT } from '@/ui/Field'
import { count } from '@/ui/format'
import { Empty, Failed, Loading } from '@/ui/States'
import { notify, notifyError } from '@/ui/toasts'

const FORMATS = '.txt,.md,.csv,.json,.pdf,.docx,.xlsx,.pptx,.html,.epub'

/** The documents that agents can search. */
export function Documents() {
  const { data, error, refetch } = useSources()
  const { upload } = useSourceActions()
  const picker = useRef<HTMLInputElement>(null)
  function send(file: File | undefined) {
    if (!file) return
    upload.mutate(file, { onSuccess: () => notify(text.memory.uploaded(file.name)), onError: notifyError })
  }
  return (
    <section aria-labelledby="documents">
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <h2 id="documents" className="text-sm font-semibold">
          {text.memory.documents}
        </h2>
        <Button disabled={upload.isPending} onClick={() => picker.current?.click()}>
          {text.memory.upload}
        </Button>
        <input
          ref={picker}
          type="file"
          hidden
          accept={FORMATS}
          aria-label={text.memory.upload}
          onChange={(event) => {
            send(event.currentTarget.files?.[0])
            event.currentTarget.value = ''
          }}
        />
      </div>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={2} />
      ) : data.data.length ? (
        <>
          <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
            {data.data.map((source) => (
              <Row key={source.id} source={source} />
            ))}
          </ul>
          <Search />
        </>
      ) : (
        <Empty icon={Files} title={text.memory.emptyDocuments}>
          {text.memory.emptyDocumentsAbout}
        </Empty>
      )}
    </section>
  )
}

function Row({ source }: { source: Source }) {
  const { remove } = useSourceActions()
  return (
    <li className="flex items-center gap-2 px-4 py-2">
      <div className="min-w-0 grow">
        <p className="font-mono text-sm break-all">{source.path}</p>
        <p className="flex flex-wrap items-center gap-2 text-xs text-muted">
          <Badge>{source.kind}</Badge>
          <span>{text.common.labeled(text.memory.count, count(source.documents))}</span>
        </p>
        {source.failed > 0 && <Problems source={source} />}
      </div>
      <IconButton
        label={text.memory.removeSource(source.path)}
        disabled={remove.isPending}
        onClick={() => remove.mutate(source.id, { onError: notifyError })}
      >
        <Trash2 size={16} aria-hidden />
      </IconButton>
    </li>
  )
}

/** The documents of a source that could not be indexed completely, each with the reason. */
function Problems({ source }: { source: Source }) {
  const [isOpen, setOpen] = useState(false)
  const { data, error } = useDocuments(isOpen ? source.id : '')
  return (
    <details className="mt-1 text-xs" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="w-fit cursor-pointer py-1 text-danger max-md:min-h-11">
        {text.memory.failed(source.failed)}
      </summary>
      {error && <Failed error={error} />}
      <ul className="space-y-1">
        {data?.data
          .filter((document) => document.problem)
          .map((document) => (
            <li key={document.path} className="break-words">
              <span className="font-mono break-all">{document.path}</span>: {document.problem}
            </li>
          ))}
      </ul>
    </details>
  )
}

/** A form that searches the documents, with the same results that agents get. */
function Search() {
  const [query, setQuery] = useState('')
  const { data, error } = useKnowledgeSearch(query)
  function search(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    setQuery(String(new FormData(event.currentTarget).get('query')).trim())
  }
  return (
    <div className="mt-4">
      <form onSubmit={search} className="grid items-end gap-3 sm:grid-cols-[1fr_auto]">
        <Field label={text.memory.searchLabel}>
          {(field) => <input {...field} name="query" required maxLength={500} autoComplete="off" className={INPUT} />}
        </Field>
        <Button type="submit">{text.memory.search}</Button>
      </form>
      <div role="status" className="mt-3 space-y-3 text-sm">
        {error && <Failed error={error} />}
        {data?.data.length === 0 && <p className="text-muted">{text.memory.noHits}</p>}
        {data?.data.map((hit) => (
          <article key={`${hit.path} ${hit.place} ${hit.text.slice(0, 40)}`}>
            <h3 className="font-medium break-all">
              {hit.path}
              {hit.place && <span className="text-muted">, {hit.place}</span>}
            </h3>
            <p className="line-clamp-4 break-words whitespace-pre-line text-muted">{hit.text}</p>
          </article>
        ))}
      </div>
    </div>
  )
}
