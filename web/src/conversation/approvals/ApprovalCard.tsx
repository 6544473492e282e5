import { clsx } from 'clsx'
import { Hand } from 'lucide-react'
import { useEffect, useId, useState } from 'react'
import { Problem } from '@/api/client'
import { approvals } from '@/api/conversations'
import type { Answer, Approval, Json } from '@/api/types'
import { CallPreview } from '@/conversation/approvals/CallPreview'
import { describe } from '@/conversation/tools/describe'
import { visible } from '@/conversation/tools/visible'
import { useCallPreview } from '@/data/approvals'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

/** ms during which a new card ignores clicks and keys, because they may have been meant for something else. */
const UNSEEN = 400

type Way = 'once' | 'conversation' | 'always' | 'no' | 'edit'

interface Props {
  approval: Approval
  /** Submit the answer. Throw if it fails. */
  answer: (answer: Answer) => Promise<void>
}

/** A tool call that needs approval, with the possible answers. */
export function ApprovalCard({ approval, answer }: Props) {
  const [way, setWay] = useState<Way>('once')
  const [busy, setBusy] = useState(false)
  const preview = useCallPreview(approval)
  const seen = useSeen(preview)
  const title = useId()
  const described = describe(approval.tool, approval.input)
  const isDangerous = approval.destructive.length > 0

  async function give(what: Answer) {
    if (busy || !seen) return
    setBusy(true)
    try {
      await answer(what)
    } catch (error) {
      notifyError(error instanceof Problem && error.status === 409 ? new Error(text.approval.answeredElsewhere) : error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <section
      aria-labelledby={title}
      className={clsx(
        'my-3 overflow-hidden rounded-2xl border bg-raised shadow-raised',
        isDangerous ? 'border-danger' : 'border-warn/50',
      )}
    >
      <header className={clsx('flex items-start gap-2.5 px-4 py-3', isDangerous ? 'bg-danger-soft' : 'bg-warn-soft')}>
        <Hand size={18} aria-hidden className={clsx('mt-0.5 shrink-0', isDangerous ? 'text-danger' : 'text-warn')} />
        <h3 id={title} className="min-w-0 text-sm font-semibold break-words">
          {described.verb}
          {approval.tool === 'shell' ? text.approval.aCommand : ''}
          {approval.tool !== 'shell' && (
            <span className="font-mono text-[0.8125rem] font-medium"> {visible(described.object)}</span>
          )}
          {text.approval.question}
        </h3>
      </header>
      <CallPreview approval={approval} preview={preview} />
      <AnswerButtons approval={approval} way={way} setWay={setWay} give={give} busy={busy || !seen} />
    </section>
  )
}

interface AnswerButtonsProps {
  approval: Approval
  way: Way
  setWay: (way: Way) => void
  give: (answer: Answer) => Promise<void>
  busy: boolean
}

function AnswerButtons({ approval, way, setWay, give, busy }: AnswerButtonsProps) {
  const [patterns, setPatterns] = useState<readonly string[]>(approval.lasting)
  const lasting = approval.lasting.length > 0
  const hasWider = approval.lasting.some((exact) => choiceFor(approval, exact) !== null)
  const isWider = patterns.some((pattern, at) => pattern !== approval.lasting[at])
  const own = approval.options.filter((option) => option.kind.startsWith('allow'))
  const first = approval.destructive.length > 0 ? 'plain' : 'primary'
  const repeats = !hasWider && approval.lasting.length === 1 && approval.lasting[0] === lineOf(approval)
  const refusals = approval.options.filter((option) => !option.kind.startsWith('allow'))
  return (
    <div className="border-t border-line px-4 py-3">
      {(way === 'once' || way === 'conversation') && (
        <div className="flex flex-wrap gap-2">
          {own.length === 0 && (
            <Button look={first} disabled={busy} onClick={() => void give({ approved: true, option: 'once' })}>
              {text.approval.once}
            </Button>
          )}
          {own.map((option) => (
            <Button
              key={option.id}
              look={option.kind === 'allow_once' ? first : undefined}
              disabled={busy}
              onClick={() => void give({ approved: true, option: option.id })}
            >
              {named(option)}
            </Button>
          ))}
          {lasting && (
            <Button
              disabled={busy}
              onClick={() =>
                void give({ approved: true, option: 'conversation', ...(isWider && { patterns: [...patterns] }) })
              }
            >
              {text.approval.conversation}
            </Button>
          )}
          {approval.edits && (
            <Button disabled={busy} onClick={() => void give({ approved: true, option: 'edits' })}>
              {text.approval.allEdits}
            </Button>
          )}
          {approval.always && (
            <Button disabled={busy} onClick={() => setWay('always')}>
              {text.approval.always}
            </Button>
          )}
          {approval.editable && (
            <Button disabled={busy} onClick={() => setWay('edit')}>
              {text.approval.edit}
            </Button>
          )}
          {refusals
            .filter((option) => option.kind === 'reject_always')
            .map((option) => (
              <Button
                key={option.id}
                look="danger"
                disabled={busy}
                onClick={() => void give({ approved: false, option: option.id })}
              >
                {named(option)}
              </Button>
            ))}
          <Button look="danger" disabled={busy} onClick={() => setWay('no')}>
            {text.approval.deny}
          </Button>
          <Explain id={approval.id} />
        </div>
      )}
      {lasting && !repeats && (way === 'once' || way === 'conversation') && (
        <div className="mt-2 text-xs text-muted">
          {text.approval.conversationHelp}
          <PatternChoices approval={approval} patterns={patterns} choose={setPatterns} />
        </div>
      )}
      {way === 'always' && (
        <>
          {hasWider && <PatternChoices approval={approval} patterns={patterns} choose={setPatterns} />}
          <AlwaysForm
            key={patterns.join('\n')}
            suggested={patterns}
            give={give}
            busy={busy}
            back={() => setWay('once')}
          />
        </>
      )}
      {way === 'no' && <DenyForm give={give} busy={busy} back={() => setWay('once')} />}
      {way === 'edit' && <EditForm input={approval.input} give={give} busy={busy} back={() => setWay('once')} />}
    </div>
  )
}

/** Return the command that the card shows, or an empty string. */
function lineOf({ command, input }: Approval): string {
  const given = input && typeof input === 'object' && !Array.isArray(input) ? input.command : ''
  return command || (typeof given === 'string' ? given.trim() : '')
}

interface PatternChoicesProps {
  approval: Approval
  /** The chosen patterns, in the order of `approval.lasting`. */
  patterns: readonly string[]
  choose: (patterns: readonly string[]) => void
}

/** Return the part for which wider patterns than `exact` can be chosen. Null if there is none, or if several parts have this pattern. */
function choiceFor(approval: Approval, exact: string) {
  const [part, ...others] = approval.parts.filter(
    ({ action, patterns: [first] }) => action === 'ask' && first === exact,
  )
  return part && others.length === 0 && part.patterns.length > 1 ? part : null
}

/** The patterns that an answer allows from now on. For parts with wider patterns, the user can choose one. */
function PatternChoices({ approval, patterns, choose }: PatternChoicesProps) {
  const name = useId()
  return approval.lasting.map((exact, at) => {
    const part = choiceFor(approval, exact)
    if (!part) {
      return (
        <code key={exact} className="ml-1.5 font-mono text-xs break-all text-ink">
          {visible(exact)}
        </code>
      )
    }
    return (
      <fieldset key={exact} className="my-1">
        <legend className="sr-only">{text.approval.patterns(visible(part.text))}</legend>
        {part.patterns.map((pattern) => (
          <label key={pattern} className="flex min-h-7 cursor-pointer items-center gap-2 max-md:min-h-11">
            <input
              type="radio"
              name={`${name}-${at}`}
              checked={patterns[at] === pattern}
              onChange={() => choose(patterns.map((old, index) => (index === at ? pattern : old)))}
              className="accent-accent"
            />
            <code className="min-w-0 font-mono text-xs break-all text-ink">{visible(pattern)}</code>
          </label>
        ))}
      </fieldset>
    )
  })
}

/** Return an outside agent's label for an option with control characters escaped, or the default label. */
function named({ label, kind }: Approval['options'][number]): string {
  return visible(label).slice(0, 60) || text.approval.kinds[kind]
}

interface FormProps {
  give: (answer: Answer) => Promise<void>
  busy: boolean
  back: () => void
}

const FIELD = 'w-full rounded-lg border border-line-strong bg-surface px-3 py-2 font-mono text-[0.8125rem]'

function AlwaysForm({ suggested, give, busy, back }: FormProps & { suggested: readonly string[] }) {
  const [patterns, setPatterns] = useState(suggested.join('\n'))
  const field = useId()
  const kept = patterns
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (kept.length) void give({ approved: true, option: 'always', patterns: kept })
      }}
    >
      <label htmlFor={field} className="mb-1.5 block text-sm font-medium">
        {text.approval.alwaysLabel}
      </label>
      <textarea
        id={field}
        value={patterns}
        rows={Math.min(6, Math.max(1, kept.length))}
        spellCheck={false}
        onChange={(event) => setPatterns(event.target.value)}
        className={FIELD}
      />
      <p className="mt-1 mb-3 text-xs text-muted">{text.approval.alwaysHelp}</p>
      <Row submit={text.approval.alwaysSubmit} busy={busy || !kept.length} back={back} />
    </form>
  )
}

function DenyForm({ give, busy, back }: FormProps) {
  const [reason, setReason] = useState('')
  const field = useId()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void give({ approved: false, ...(reason.trim() && { reason: reason.trim() }) })
      }}
    >
      <label htmlFor={field} className="mb-1.5 block text-sm font-medium">
        {text.approval.denyLabel}
      </label>
      <textarea
        id={field}
        // biome-ignore lint/a11y/noAutofocus: the user just clicked Deny
        autoFocus
        value={reason}
        rows={2}
        onChange={(event) => setReason(event.target.value)}
        className={clsx(FIELD, 'mb-3 font-sans text-sm')}
      />
      <Row submit={text.approval.denySubmit} look="danger" busy={busy} back={back} />
    </form>
  )
}

function EditForm({ input, give, busy, back }: FormProps & { input: Json }) {
  const [value, setValue] = useState(() => JSON.stringify(input, null, 2))
  const field = useId()
  const edited = parsed(value)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (edited !== undefined) void give({ approved: true, option: 'once', arguments: edited })
      }}
    >
      <label htmlFor={field} className="mb-1.5 block text-sm font-medium">
        {text.approval.editLabel}
      </label>
      <textarea
        id={field}
        value={value}
        rows={Math.min(16, value.split('\n').length + 1)}
        spellCheck={false}
        aria-invalid={edited === undefined}
        onChange={(event) => setValue(event.target.value)}
        className={FIELD}
      />
      <p className="mt-1 mb-3 min-h-4 text-xs text-danger" role="status">
        {edited === undefined && text.approval.editInvalid}
      </p>
      <Row submit={text.approval.editSubmit} busy={busy || edited === undefined} back={back} />
    </form>
  )
}

/** Parse a JSON object. Return undefined for anything else. */
function parsed(source: string): Record<string, Json> | undefined {
  try {
    const value = JSON.parse(source) as Json
    return value && typeof value === 'object' && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function Row({
  submit,
  busy,
  back,
  look = 'primary',
}: {
  submit: string
  busy: boolean
  back: () => void
  look?: 'primary' | 'danger'
}) {
  return (
    <div className="flex gap-2">
      <Button type="submit" look={look} disabled={busy}>
        {submit}
      </Button>
      <Button look="quiet" onClick={back}>
        {text.common.back}
      </Button>
    </div>
  )
}

function Explain({ id }: { id: string }) {
  const [explanation, setExplanation] = useState('')
  const [busy, setBusy] = useState(false)
  return (
    <>
      <Button
        look="quiet"
        disabled={busy}
        onClick={() => {
          setBusy(true)
          approvals
            .explain(id)
            .then((response) => setExplanation(response.text), notifyError)
            .finally(() => setBusy(false))
        }}
      >
        {busy ? text.approval.explaining : text.approval.explain}
      </Button>
      <p role="status" className={explanation ? 'w-full text-sm text-muted' : 'sr-only'}>
        {explanation}
      </p>
    </>
  )
}

/** Return true once the card has been visible long enough to be read. A preview that arrives later starts that time again. */
function useSeen(preview: unknown): boolean {
  const [seen, setSeen] = useState<unknown>(null)
  useEffect(() => {
    const timer = setTimeout(() => setSeen(preview), UNSEEN)
    return () => clearTimeout(timer)
  }, [preview])
  return seen === preview
}
