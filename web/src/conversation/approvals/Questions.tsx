import { MessageCircleQuestion } from 'lucide-react'
import { useId, useState } from 'react'
import type { Answer, Approval, Question } from '@/api/types'
import { Text } from '@/conversation/messages/Text'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

interface Props {
  approval: Approval
  answer: (answer: Answer) => Promise<void>
}

/** Questions from a model or about a budget. Most of them also accept a free-text answer. */
export function Questions({ approval, answer }: Props) {
  const questions = approval.questions ?? []
  const [replies, setReplies] = useState<string[][]>(() => questions.map(() => []))
  const [own, setOwn] = useState<string[]>(() => questions.map(() => ''))
  const [changed, setChanged] = useState<Record<string, string>>({})
  const [busy, setBusy] = useState(false)
  const given = questions.map((_, at) => [...(replies[at] ?? []), ...(own[at]?.trim() ? [own[at].trim()] : [])])

  async function send(value: string[][], approved: boolean) {
    setBusy(true)
    const edits = Object.keys(changed).length ? { arguments: changed } : {}
    await answer(approved ? { approved, value, ...edits } : { approved }).catch(notifyError)
    setBusy(false)
  }

  return (
    <form
      aria-label={text.questions.label}
      className="my-3 overflow-hidden rounded-2xl border border-accent/40 bg-raised shadow-raised"
      onSubmit={(event) => {
        event.preventDefault()
        void send(given, true)
      }}
    >
      <div className="space-y-5 px-4 py-4">
        {questions.map((question, at) => (
          <One
            // biome-ignore lint/suspicious/noArrayIndexKey: questions have no id
            key={at}
            question={question}
            chosen={replies[at] ?? []}
            own={own[at] ?? ''}
            document={changed[question.edits ?? ''] ?? question.question ?? question.text ?? ''}
            edit={(value) => setChanged({ ...changed, [question.edits ?? '']: value })}
            choose={(labels) => setReplies(replies.map((old, index) => (index === at ? labels : old)))}
            write={(value) => setOwn(own.map((old, index) => (index === at ? value : old)))}
          />
        ))}
      </div>
      <footer className="flex gap-2 border-t border-line px-4 py-3">
        <Button
          type="submit"
          look="primary"
          disabled={
            busy || given.some((reply) => !reply.length) || Object.values(changed).some((value) => !value.trim())
          }
        >
          {text.questions.submit}
        </Button>
        <Button look="quiet" disabled={busy} onClick={() => void send([], false)}>
          {text.questions.skip}
        </Button>
      </footer>
    </form>
  )
}

interface OneProps {
  question: Question
  chosen: string[]
  own: string
  /** The question's text, with the user's changes. */
  document: string
  edit: (value: string) => void
  choose: (labels: string[]) => void
  write: (value: string) => void
}

function One({ question, chosen, own, document, edit, choose, write }: OneProps) {
  const name = useId()
  const [editing, setEditing] = useState(false)
  const asked = question.question ?? question.text ?? ''
  const isDocument = asked.includes('\n') || !!question.edits // such as a plan
  return (
    <fieldset>
      <legend className="mb-2 flex items-start gap-2.5 text-sm font-semibold">
        <MessageCircleQuestion size={18} aria-hidden className="shrink-0 text-accent" />
        <span>{isDocument ? question.header : asked}</span>
      </legend>
      {isDocument && editing && (
        <textarea
          value={document}
          onChange={(event) => edit(event.target.value)}
          aria-label={text.questions.document(question.header)}
          rows={Math.min(24, document.split('\n').length + 2)}
          className="mb-3 w-full rounded-lg border border-line-strong bg-surface px-3 py-2 font-mono text-[0.8125rem]"
        />
      )}
      {isDocument && !editing && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
        <div tabIndex={0} className="mb-3 max-h-[60vh] overflow-y-auto rounded-lg border border-line px-4 py-1">
          <Text text={document} streaming={false} />
        </div>
      )}
      {question.edits && (
        <Button className="mb-3" onClick={() => setEditing(!editing)}>
          {editing ? text.questions.editDone : text.questions.edit}
        </Button>
      )}
      <div className="space-y-1.5 pl-7">
        {question.options.map((option) => (
          <label
            key={option.label}
            className="flex min-h-9 cursor-pointer items-start gap-2.5 rounded-lg px-2 py-1.5 text-sm hover:bg-hover has-checked:bg-accent-soft max-md:min-h-11"
          >
            <input
              type={question.multiple ? 'checkbox' : 'radio'}
              name={name}
              checked={chosen.includes(option.label)}
              onChange={(event) => {
                const rest = question.multiple ? chosen.filter((label) => label !== option.label) : []
                choose(event.target.checked ? [...rest, option.label] : rest)
              }}
              className="mt-1 accent-accent"
            />
            <span>
              <span className="font-medium">{option.label}</span>
              {option.description && <span className="block text-muted">{option.description}</span>}
            </span>
          </label>
        ))}
        {!question.choices_only && (
          <input
            value={own}
            onChange={(event) => write(event.target.value)}
            aria-label={question.options.length ? text.questions.other : asked}
            placeholder={question.options.length ? text.questions.otherPlaceholder : text.questions.placeholder}
            className="min-h-9 w-full rounded-lg border border-line-strong bg-surface px-3 text-sm max-md:min-h-11"
          />
        )}
      </div>
    </fieldset>
  )
}
