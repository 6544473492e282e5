import { clsx } from 'clsx'
import { FolderOpen, ShieldAlert, TriangleAlert } from 'lucide-react'
import { type ReactNode, useMemo } from 'react'
import type { Approval, AskedPart, Json } from '@/api/types'
import { Code } from '@/conversation/markdown/Code'
import { Diff } from '@/conversation/tools/Diff'
import { describe } from '@/conversation/tools/describe'
import { diffLines, proposed } from '@/conversation/tools/diff'
import { visible } from '@/conversation/tools/visible'
import { changesFile, type Preview } from '@/data/approvals'
import { text } from '@/text'

type Arguments = Readonly<Record<string, Json>>

interface Props {
  approval: Approval
  /** The change of a file, once it is known. */
  preview: Preview | undefined
}

/** Everything that a call would do: its folder and dangers, then its command, its changes to a file, or its arguments. */
export function CallPreview({ approval, preview }: Props) {
  const { input, command } = approval
  const given: Arguments | null = input && typeof input === 'object' && !Array.isArray(input) ? input : null
  const own = typeof given?.command === 'string' ? given.command : ''
  const line = command || own
  const access = text.approval.access[String(given?.access)] ?? ''
  const shown = command ? [] : [...(own ? ['command'] : []), ...(access ? ['access'] : [])]
  const isLocal = line !== '' || typeof given?.path === 'string'
  return (
    <>
      <Dangers commands={approval.destructive} line={line} access={access} />
      {isLocal && approval.directory && (
        <p className="flex items-start gap-2 border-b border-line px-4 py-2 text-xs text-muted">
          <FolderOpen size={14} aria-hidden className="mt-0.5 shrink-0" />
          <span className="min-w-0 break-all">
            <span className="sr-only">{text.approval.folder}</span>
            <bdi className="font-mono">{visible(approval.directory)}</bdi>
          </span>
        </p>
      )}
      {changesFile(approval) && given ? (
        <FileChange tool={approval.tool} given={given} preview={preview} />
      ) : (
        <>
          {line && <Code text={visible(line)} language="bash" wrapped />}
          <ArgumentList approval={approval} given={given} shown={shown} />
        </>
      )}
      <Parts parts={approval.parts} line={line} reasons={access === ''} />
    </>
  )
}

/** The commands that can destroy data, if they are not the whole line, and what the sandbox would not prevent. */
function Dangers({ commands, line, access }: { commands: readonly string[]; line: string; access: string }) {
  const named = commands.filter((command) => command.trim() !== line.trim())
  return (
    <>
      {commands.length > 0 && (
        <Warning icon={<TriangleAlert size={15} aria-hidden />} look="bg-danger-soft text-danger">
          {text.approval.destructive(named.length)}
          {named.map((command) => (
            <code key={command} className="block font-mono text-[0.8125rem] break-words">
              {visible(command)}
            </code>
          ))}
        </Warning>
      )}
      {access && (
        <Warning icon={<ShieldAlert size={15} aria-hidden />} look="bg-warn-soft text-warn">
          {access}
        </Warning>
      )}
    </>
  )
}

function Warning({ icon, look, children }: { icon: ReactNode; look: string; children: ReactNode }) {
  return (
    <div className={clsx('flex items-start gap-2 border-b border-line px-4 py-2 text-sm font-medium', look)}>
      <span className="mt-0.5 shrink-0">{icon}</span>
      <div className="min-w-0">{children}</div>
    </div>
  )
}

/** The change of a file, with the lines around it once they are fetched. */
function FileChange({ tool, given, preview }: { tool: string; given: Arguments; preview: Preview | undefined }) {
  const lines = useMemo(() => (preview?.diff ? diffLines(preview.diff) : proposed(tool, given)), [preview, tool, given])
  return (
    <>
      {preview?.fact && !(tool === 'edit_file' && preview.diff) && (
        <p className="px-4 pt-2 text-xs text-muted">{visible(preview.fact)}</p>
      )}
      <Diff lines={lines} />
    </>
  )
}

interface ArgumentListProps {
  approval: Approval
  given: Arguments | null
  /** Names of arguments that are shown elsewhere. */
  shown: readonly string[]
}

/** The arguments of a call by name. An argument that the card's title shows in full is not repeated. */
function ArgumentList({ approval, given, shown }: ArgumentListProps) {
  if (!given) return <Code text={visible(JSON.stringify(approval.input, null, 2))} language="json" wrapped />
  const names = Object.keys(given).filter((name) => !shown.includes(name))
  const [only] = names
  const titled = approval.tool === 'shell' ? '' : describe(approval.tool, approval.input).object
  if (only === undefined || (names.length === 1 && given[only] === titled)) return null
  return (
    <dl className="space-y-2 px-4 py-3 text-sm">
      {names.map((name) => (
        <div key={name} className="grid gap-x-4 sm:grid-cols-[9rem_minmax(0,1fr)]">
          <dt className="text-xs text-muted sm:pt-0.5">{visible(name.replaceAll('_', ' '))}</dt>
          <dd className="min-w-0">
            <Argument value={given[name] ?? null} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Argument({ value }: { value: Json }) {
  const isList = Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
  if (isList)
    return (
      <ul>
        {value.map((item, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: items have no id
          <li key={at}>
            <Argument value={item} />
          </li>
        ))}
      </ul>
    )
  if (value !== null && typeof value === 'object')
    return (
      <Code
        text={visible(JSON.stringify(value, null, 2))}
        language="json"
        wrapped
        className="rounded-lg bg-sunken px-2.5! py-1.5!"
      />
    )
  return (
    <span
      dir="auto"
      className="block max-h-64 overflow-auto font-mono text-[0.8125rem] break-words whitespace-pre-wrap"
    >
      {value === '' || value === null ? text.approval.empty : visible(String(value))}
    </span>
  )
}

const VERDICTS = {
  allow: [text.approval.verdicts.allow, 'text-good'],
  ask: [text.approval.verdicts.ask, 'text-warn'],
  deny: [text.approval.verdicts.deny, 'text-danger'],
} as const

interface PartsProps {
  parts: readonly AskedPart[]
  line: string
  /** Show why approval is needed. */
  reasons: boolean
}

/** The parts of a command, if they differ in something that the command itself doesn't show. */
function Parts({ parts, line, reasons }: PartsProps) {
  const [first] = parts
  const isPlain = (part: AskedPart) =>
    part.action === 'ask' && part.why === first?.why && !part.within && part.patterns.length > 0
  const isWhole = parts.length === 1 && first?.text.trim() === line.trim()
  if (!first || parts.every(isPlain) || (isWhole && !reasons)) return null
  if (isWhole) return <p className="border-t border-line px-4 py-2 text-xs text-muted">{first.why}</p>
  return (
    <ul aria-label={text.approval.parts} className="divide-y divide-line border-t border-line text-sm">
      {parts.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts have no id
        <li key={at} className={clsx('flex flex-wrap items-baseline gap-x-3 px-4 py-2', part.within && 'pl-9')}>
          <code className="min-w-0 grow font-mono text-[0.8125rem] break-words">{visible(part.text)}</code>
          <span className={clsx('text-xs font-medium', VERDICTS[part.action][1])}>{VERDICTS[part.action][0]}</span>
          <span className="w-full text-xs text-faint sm:w-auto">{part.why}</span>
        </li>
      ))}
    </ul>
  )
}
