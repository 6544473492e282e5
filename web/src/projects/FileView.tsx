import { Pencil } from 'lucide-react'
import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { LINE, NumberedCode } from '@/conversation/markdown/NumberedCode'
import { size } from '@/conversation/tools/Output'
import { type FileContent, useFile } from '@/data/files'
import { Editor, hasDraft } from '@/projects/Editor'
import { languageOf, rememberFile } from '@/projects/places'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Failed, Loading } from '@/ui/States'

interface Props {
  project: string
  path: string
  /** The line to show and mark; 0 means none. */
  line: number
  goTo: (line: number) => void
  back: ReactNode
}

/** A file with line numbers and highlighting, or an editor for it. */
export function FileView({ project, path, line, goTo, back }: Props) {
  const { data, error, refetch } = useFile(project, path)
  const [editing, setEditing] = useState(() => hasDraft(project, path))
  useEffect(() => rememberFile(project, path), [project, path])
  if (data && editing && data.text !== null)
    return <Editor project={project} path={path} content={data} back={back} onClose={() => setEditing(false)} />
  return (
    <section aria-label={path} className="flex min-h-0 min-w-0 grow flex-col">
      <FileHead path={path} back={back}>
        {data && <span className="text-xs text-faint">{size(data.size)}</span>}
        {data?.text != null && <GoToLine goTo={goTo} />}
        {data?.text != null && (
          <Button disabled={data.protected !== ''} onClick={() => setEditing(true)}>
            <Pencil size={15} aria-hidden />
            {text.common.edit}
          </Button>
        )}
      </FileHead>
      {error ? (
        <Failed error={error} retry={() => void refetch()} className="m-4" />
      ) : !data ? (
        <Loading rows={8} className="m-4" />
      ) : (
        <>
          {data.protected && <p className="px-4 py-2 text-sm text-muted">{text.files.protected(data.protected)}</p>}
          {data.kind === 'text' ? (
            <Lines key={path} content={data} line={line} goTo={goTo} />
          ) : (
            <p className="px-4 py-8 text-sm text-muted">{text.files.unreadable[data.kind]}</p>
          )}
        </>
      )}
    </section>
  )
}

/** The bar above a file: its path, and what can be done with it. */
export function FileHead({ path, back, children }: { path: string; back: ReactNode; children?: ReactNode }) {
  return (
    <div className="flex min-h-12 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-1 sm:px-4">
      {back}
      <h2 className="min-w-0 grow basis-40 font-mono text-[0.8125rem] break-all">{path}</h2>
      {children}
    </div>
  )
}

function GoToLine({ goTo }: { goTo: (line: number) => void }) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const line = Number(new FormData(event.currentTarget).get('line'))
    if (line > 0) goTo(line)
  }
  return (
    <form onSubmit={submit}>
      <input
        name="line"
        type="number"
        min={1}
        aria-label={text.files.goToLine}
        placeholder={text.files.line}
        className="min-h-9 w-20 rounded-lg border border-line-strong bg-raised px-2 text-sm placeholder:text-faint max-md:min-h-11"
      />
    </form>
  )
}

function Lines({ content, line, goTo }: { content: FileContent; line: number; goTo: (line: number) => void }) {
  const box = useRef<HTMLElement>(null)
  const source = (content.text ?? '').replace(/\r\n?/g, '\n')
  const lines = useMemo(() => source.replace(/\n$/, '').split('\n'), [source])
  const marked = line > 0 && line <= lines.length ? line : 0
  useEffect(() => {
    if (marked && box.current) box.current.scrollTop = marked * LINE - box.current.clientHeight / 3
  }, [marked])

  return (
    <section
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
      tabIndex={0}
      aria-label={text.files.content}
      dir="ltr"
      className="min-h-0 grow overflow-auto focus-visible:outline-offset-[-2px]"
    >
      <NumberedCode text={source} language={languageOf(content.path)} label={content.path} choose={goTo}>
        {marked > 0 && (
          <div
            aria-hidden
            data-marked={marked}
            style={{ top: (marked - 1) * LINE, height: LINE }}
            className="absolute inset-x-0 bg-mark"
          />
        )}
      </NumberedCode>
      <p role="status" className="sr-only">
        {marked > 0 && text.files.atLine(marked, lines[marked - 1] ?? '')}
      </p>
    </section>
  )
}
