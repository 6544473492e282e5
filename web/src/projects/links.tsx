import { FileSymlink } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import type { Message } from '@/api/types'
import { useAround } from '@/conversation/messages/context'
import type { Finding } from '@/conversation/messages/parts'
import { type Call, callOf, isTool } from '@/conversation/tools/call'
import { useProjects } from '@/data/projects'
import { fileHref, inProject } from '@/projects/places'
import { text } from '@/text'

type Input = Readonly<Record<string, unknown>>

const OWN = new Set(['read_file', 'write_file', 'edit_file'])
const WRITING = new Set(['write_file', 'edit_file'])
/** Kinds of calls that change files, in the words of the Agent Client Protocol. */
const KINDS: ReadonlySet<unknown> = new Set(['edit', 'delete', 'move'])

function inputOf(call: Call): Input {
  return call.input && typeof call.input === 'object' && !Array.isArray(call.input) ? call.input : {}
}

/** Return the file that a call names and the line in it, or null. Tools of other programs name it `file_path`. */
export function fileOf(call: Call): { path: string; line: number } | null {
  const input = inputOf(call)
  const path = OWN.has(call.name) ? input.path : input.file_path
  if (typeof path !== 'string' || !path || path.startsWith('blob:')) return null
  const line = input.start_line ?? input.offset
  return { path, line: typeof line === 'number' ? line : 0 }
}

/** Return the files that the calls of a message have changed, each once. Calls of other programs are known by their input. */
export function changedFiles(message: Pick<Message, 'parts'>): string[] {
  const found = message.parts.filter(isTool).flatMap((part) => {
    const call = callOf(part)
    if (call.state !== 'done') return []
    const input = inputOf(call)
    const metadata = part.toolMetadata as { acp?: { kind?: unknown; locations?: unknown } } | undefined
    if (WRITING.has(call.name)) return [input.path]
    if (KINDS.has(metadata?.acp?.kind)) return listed(metadata?.acp?.locations)
    if (Array.isArray(input.changes)) return listed(input.changes)
    return 'content' in input || 'new_string' in input || 'edits' in input ? [input.file_path] : []
  })
  return [...new Set(found.filter((path): path is string => typeof path === 'string' && path !== ''))]
}

function listed(items: unknown): unknown[] {
  return Array.isArray(items) ? items.map((item) => (item && typeof item === 'object' ? item.path : null)) : []
}

/** Return a function that gives the address of a file in the conversation's project, or null for files elsewhere. */
function usePlace(): (path: string, line?: number) => string | null {
  const { session } = useAround()
  const { conversation } = useSyncExternalStore(session.subscribe, session.get)
  const projects = useProjects()
  const project = projects.find(({ id }) => id === conversation?.project)
  return (path, line) => {
    const inside = project?.root_path ? inProject(project.root_path, conversation?.directory ?? '', path) : null
    return project && inside ? fileHref(project.id, inside, line) : null
  }
}

/** A link from a tool call to the line of the file that it names. */
export function FileLink({ call }: { call: Call }) {
  const place = usePlace()
  const file = fileOf(call)
  const href = file && place(file.path, file.line)
  if (!file || !href) return null
  return (
    <Link
      href={href}
      aria-label={text.files.openFile(file.path)}
      title={text.files.openFile(file.path)}
      className="grid size-8 shrink-0 place-items-center rounded-lg text-muted hover:bg-hover hover:text-ink max-md:size-11"
    >
      <FileSymlink size={15} aria-hidden />
    </Link>
  )
}

/** The files that an answer has changed, with links to those in the conversation's project. */
export function ChangedFiles({ message }: { message: Message }) {
  const place = usePlace()
  const files = changedFiles(message)
  if (!files.length) return null
  return (
    <ul
      aria-label={text.files.changedByRun}
      className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted"
    >
      <li aria-hidden>{text.files.changedByRun}</li>
      {files.map((path) => {
        const href = place(path)
        return (
          <li key={path} className="min-w-0 font-mono break-all">
            {href ? (
              <Link href={href} className="inline-flex items-center underline underline-offset-2 max-md:min-h-11">
                {path}
              </Link>
            ) : (
              path
            )}
          </li>
        )
      })}
    </ul>
  )
}

/** The problems that a review has found, with links to their lines in the conversation's project. */
export function Findings({ findings }: { findings: readonly Finding[] }) {
  const place = usePlace()
  if (!findings.length) return null
  return (
    <section aria-label={text.files.findings} className="my-3 rounded-xl border border-line px-3.5 py-2.5 text-sm">
      <h3 className="mb-1 font-medium">{text.files.findings}</h3>
      <ol className="divide-y divide-line">
        {findings.map(({ path, line, text: problem }, at) => {
          const href = place(path, line)
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: findings never change their order, and two can be equal
            <li key={at} className="flex flex-wrap gap-x-3 py-1.5">
              {href ? (
                <Link href={href} className="font-mono break-all underline underline-offset-2 max-md:min-h-11">
                  {`${path}:${line}`}
                </Link>
              ) : (
                <span className="font-mono break-all">{`${path}:${line}`}</span>
              )}
              <span className="line-clamp-2 min-w-0 text-muted">{problem}</span>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
