import { clsx } from 'clsx'
import { Ban, Check, ChevronRight, CircleAlert, Hand, Hourglass, LoaderCircle, Square } from 'lucide-react'
import { memo, type ReactNode, useMemo, useState } from 'react'
import type { Json } from '@/api/types'
import { Code } from '@/conversation/markdown/Code'
import { CallChildren } from '@/conversation/tools/Children'
import type { Call } from '@/conversation/tools/call'
import { Diff, DiffCount } from '@/conversation/tools/Diff'
import { describe } from '@/conversation/tools/describe'
import { type DiffLine, diffLines, proposed } from '@/conversation/tools/diff'
import { Elapsed } from '@/conversation/tools/Elapsed'
import { Output } from '@/conversation/tools/Output'
import { TodoList } from '@/conversation/tools/TodoList'
import { FileLink } from '@/projects/links'
import { text } from '@/text'

const FILES = new Set(['edit_file', 'write_file'])

const choices = new Map<string, boolean>()

/** Return the user's choice to expand or collapse a card, and a function to change it. It is kept when the card leaves the view. */
export function useChoice(key: string): [boolean | undefined, (open: boolean) => void] {
  const [chosen, setChosen] = useState(() => choices.get(key))
  const choose = (open: boolean) => {
    choices.set(key, open)
    setChosen(open)
  }
  return [chosen, choose]
}

interface Props {
  call: Call
  live: boolean
  ended: boolean
  /** The rendered blocks of the sub-agent that this call started. */
  inside?: ReactNode[]
}

/**
 * A tool call: one line when collapsed, input and output when expanded. Todo lists, delegated tasks of an answer that has not ended, and
 * running calls with output or a sub-agent start expanded.
 */
export const ToolCard = memo(function ToolCard({ call, live, ended, inside }: Props) {
  const [chosen, choose] = useChoice(call.id)
  const running = live && !call.over && call.state !== 'asked'
  const lines = useMemo(() => diffOf(call), [call])
  const open =
    chosen ??
    (call.name === 'todo' ||
      (call.name === 'delegate' && !ended && call.state !== 'asked') ||
      (running && (call.preliminary || inside !== undefined)))
  const described = describe(call.name, call.input)
  return (
    <section
      className={clsx(
        'my-1.5 overflow-hidden rounded-xl border',
        open ? 'border-line bg-raised' : 'border-transparent',
      )}
    >
      <div className="flex items-center">
        <button
          type="button"
          aria-expanded={open}
          onClick={() => choose(!open)}
          className="flex min-h-9 min-w-0 grow cursor-pointer items-center gap-2.5 rounded-xl px-2.5 py-1 text-left text-sm hover:bg-hover max-md:min-h-11"
        >
          <State call={call} running={running} ended={ended} />
          <span className="shrink-0 text-muted">{described.verb}</span>
          <span className={clsx('min-w-0 truncate', described.literal && 'font-mono text-[0.8125rem]')}>
            {described.object}
          </span>
          {described.detail && <span className="hidden shrink-0 text-xs text-faint sm:inline">{described.detail}</span>}
          {call.hook && (
            <span className="shrink-0 text-xs text-faint">
              {call.command ? text.tools.commandLine(call.command) : text.tools.hook(call.hook)}
            </span>
          )}
          {lines && <DiffCount lines={lines} />}
          {inside && <span className="shrink-0 text-xs text-faint">{text.tools.inside(inside.length)}</span>}
          <span className="grow" />
          <Outcome call={call} running={running} ended={ended} />
          <ChevronRight
            size={15}
            aria-hidden
            className={clsx('shrink-0 text-faint transition-transform', open && 'rotate-90')}
          />
        </button>
        <FileLink call={call} />
      </div>
      {open && <Body call={call} lines={lines} inside={inside} />}
    </section>
  )
})

function Body({ call, lines, inside }: { call: Call; lines: DiffLine[] | null; inside: ReactNode[] | undefined }) {
  if (call.name === 'todo' && call.state !== 'failed') return <TodoList input={call.input} output={call.output} />
  return (
    <div className="divide-y divide-line border-t border-line">
      {lines ? (
        <Diff lines={lines} />
      ) : call.name === 'delegate' ? (
        <CallChildren call={call.id} />
      ) : (
        <Input call={call} />
      )}
      {inside && (
        <section aria-label={text.tools.subagent} className="px-2 py-1">
          {inside}
        </section>
      )}
      {call.state === 'failed' && <Failure message={call.errorText} />}
      {call.state === 'denied' && <p className="px-3.5 py-3 text-sm text-muted">{text.tools.notRun(call.reason)}</p>}
      {(call.state === 'done' || call.preliminary) && !(lines && isQuiet(call.output)) && (
        <Labelled label={call.preliminary ? text.tools.partialOutput : text.tools.output}>
          <Output
            value={call.output}
            language={call.name === 'fetch_url' || call.name === 'web_search' ? 'markdown' : ''}
          />
        </Labelled>
      )}
    </div>
  )
}

function Input({ call }: { call: Call }) {
  const { input } = call
  const given = input && typeof input === 'object' && !Array.isArray(input) ? input : null
  if (call.name === 'shell' && given && typeof given.command === 'string') {
    return (
      <Labelled label={text.tools.command}>
        <Code text={given.command} language="bash" label={text.tools.command} wrapped />
      </Labelled>
    )
  }
  const shown = call.state === 'typing' ? call.typed : JSON.stringify(input ?? {}, null, 2)
  return (
    <Labelled label={text.tools.input}>
      <Code text={shown} language="json" label={text.tools.input} wrapped settled={call.state !== 'typing'} />
    </Labelled>
  )
}

function Labelled({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div className="bg-sunken">
      <p className="px-3.5 pt-2 text-xs font-medium text-faint">{label}</p>
      {children}
    </div>
  )
}

function Failure({ message }: { message: string }) {
  return (
    <div className="bg-danger-soft">
      <p className="px-3.5 pt-2 text-xs font-medium text-danger">{text.tools.error}</p>
      <Code text={message} language="" label={text.tools.error} wrapped />
    </div>
  )
}

function State({ call, running, ended }: { call: Call; running: boolean; ended: boolean }) {
  if (call.state === 'asked')
    return <Hand size={16} className="shrink-0 text-warn" aria-label={text.tools.waitingForYou} />
  if (running)
    return <LoaderCircle size={16} className="shrink-0 animate-spin text-accent" aria-label={text.tools.running} />
  if (call.state === 'failed')
    return <CircleAlert size={16} className="shrink-0 text-danger" aria-label={text.tools.failed} />
  if (call.state === 'denied') return <Ban size={16} className="shrink-0 text-muted" aria-label={text.tools.denied} />
  if (call.state === 'done') return <Check size={16} className="shrink-0 text-good" aria-label={text.tools.done} />
  if (!ended) return <Hourglass size={15} className="mx-px shrink-0 text-faint" aria-label={text.tools.waiting} />
  return <Square size={14} className="mx-px shrink-0 text-faint" aria-label={text.tools.unfinished} />
}

function Outcome({ call, running, ended }: { call: Call; running: boolean; ended: boolean }) {
  if (running && call.state === 'running') return <Elapsed since={call.id} />
  if (call.state === 'failed') {
    return (
      <span className="max-w-48 shrink-0 truncate text-xs text-danger max-sm:hidden">
        {call.errorText.split('\n')[0]}
      </span>
    )
  }
  if (ended && !call.over && call.state !== 'asked')
    return <span className="shrink-0 text-xs text-faint">{text.tools.notFinished}</span>
  return null
}

/** Return whether the output of a change says no more than its diff. Further lines come from formatters and checks. */
function isQuiet(output: Json | undefined): boolean {
  return (
    output === undefined ||
    (typeof output === 'string' && !output.trim().includes('\n')) ||
    (typeof output === 'object' && output !== null && 'diff' in output)
  )
}

function diffOf(call: Call): DiffLine[] | null {
  if (!FILES.has(call.name) || call.state === 'failed') return null
  const { output, input } = call
  if (output && typeof output === 'object' && !Array.isArray(output) && typeof output.diff === 'string')
    return diffLines(output.diff)
  return input && typeof input === 'object' && !Array.isArray(input) ? proposed(call.name, input) : null
}
