import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Problem } from '@/api/client'
import { conversations } from '@/api/conversations'
import type { Message, UndoPart, UndoPlan } from '@/api/types'
import { useGiveBack } from '@/conversation/composer/giveBack'
import type { Session } from '@/conversation/session'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Failed, Loading } from '@/ui/States'
import { notify, notifyError } from '@/ui/toasts'

interface Props {
  session: Session
  /** The prompt to undo: the last one. */
  message: Message
  onClose: () => void
}

/** The undo dialog: first what would change, then the undo. */
export default function Undo({ session, message, onClose }: Props) {
  const [chosen, setChosen] = useState<UndoPart | null>(null)
  const [overwrite, setOverwrite] = useState(false)
  const [working, setWorking] = useState(false)
  const giveBack = useGiveBack()
  const { data, error, refetch } = useQuery({
    queryKey: ['undo', session.id, message.id, overwrite],
    queryFn: () => preview(session.id, overwrite),
    placeholderData: (before) => before,
    gcTime: 0,
    staleTime: 0,
    retry: false,
  })
  const part = chosen ?? (data && touchesFiles(data) ? 'both' : 'talk')

  async function undo(): Promise<void> {
    setWorking(true)
    try {
      const done = await conversations.undo(session.id, { part, overwrite })
      if (part !== 'files') giveBack([message.parts])
      await session.sync()
      notify(text.undo.undone(done.file_count), {
        action: { label: text.undo.redo, act: () => void redo(session).catch(notifyError) },
      })
      onClose()
    } catch (error) {
      notifyError(error)
      setWorking(false)
    }
  }

  return (
    <Dialog title={text.undo.title} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        {error ? (
          <Failed error={error} retry={() => void refetch()} />
        ) : data ? (
          <>
            <p className="line-clamp-2 text-muted" dir="auto">
              {data.prompt.text}
            </p>
            <fieldset className="space-y-1">
              <legend className="sr-only">{text.undo.what}</legend>
              {(['both', 'talk', 'files'] as const).map((one) => (
                <Choice
                  key={one}
                  label={text.undo.parts[one]}
                  about={about(one, data)}
                  checked={part === one}
                  disabled={one !== 'talk' && !touchesFiles(data)}
                  choose={() => setChosen(one)}
                />
              ))}
            </fieldset>
            {part !== 'talk' && <Files plan={data} />}
            {part !== 'talk' && (overwrite || data.kept.some((file) => file.can_overwrite)) && (
              <label className="flex min-h-9 cursor-pointer items-center gap-3 max-md:min-h-11">
                <input
                  type="checkbox"
                  checked={overwrite}
                  onChange={(event) => setOverwrite(event.target.checked)}
                  className="size-4 shrink-0 accent-accent"
                />
                {text.undo.overwrite}
              </label>
            )}
          </>
        ) : (
          <Loading rows={4} />
        )}
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button look="primary" disabled={!data || working} onClick={() => void undo()}>
            {text.common.undo}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** Redo the last undo of a conversation. */
export async function redo(session: Session): Promise<void> {
  const done = await conversations.redo(session.id)
  await session.sync()
  notify(done.kept.length ? text.undo.redoneKept(done.kept_count) : text.undo.redone)
}

/** Return what an undo would do. Without the right to change files, that is only hiding messages. */
async function preview(id: string, overwrite: boolean): Promise<UndoPlan> {
  try {
    return await conversations.undo(id, { part: 'both', overwrite, dry_run: true })
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 403) throw error
    return conversations.undo(id, { part: 'talk', dry_run: true })
  }
}

function touchesFiles(plan: UndoPlan): boolean {
  return plan.file_count > 0 || plan.kept_count > 0
}

function about(part: UndoPart, plan: UndoPlan): string {
  const messages = part === 'files' ? '' : text.undo.messages(plan.messages)
  const files = part === 'talk' || !touchesFiles(plan) ? '' : text.undo.files(plan.file_count)
  return text.common.list([messages, files].filter(Boolean)) || text.undo.noFiles
}

interface ChoiceProps {
  label: string
  about: string
  checked: boolean
  disabled: boolean
  choose: () => void
}

function Choice({ label, about, checked, disabled, choose }: ChoiceProps) {
  return (
    <label className="flex min-h-9 cursor-pointer items-center gap-3 rounded-lg px-2 hover:bg-hover has-disabled:cursor-default has-disabled:opacity-60 max-md:min-h-11">
      <input
        type="radio"
        name="part"
        checked={checked}
        disabled={disabled}
        onChange={choose}
        className="size-4 shrink-0 accent-accent"
      />
      {label}
      <span className="ml-auto text-right text-xs text-muted">{about}</span>
    </label>
  )
}

/** The files that change, those that are kept, and those that undo doesn't cover. */
function Files({ plan }: { plan: UndoPlan }) {
  return (
    <section
      aria-label={text.undo.list}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
      tabIndex={0}
      className="max-h-60 space-y-2 overflow-y-auto rounded-lg border border-line bg-sunken px-3 py-2"
    >
      <ul>
        {plan.files.map((file) => (
          <li key={file.path} className="flex gap-3">
            <span className="w-14 shrink-0 text-muted">{text.undo.changes[file.change]}</span>
            <code className="min-w-0 break-all">{file.path}</code>
          </li>
        ))}
        {plan.file_count > plan.files.length && <li>{text.undo.more(plan.file_count - plan.files.length)}</li>}
      </ul>
      <Reasons title={text.undo.kept} files={plan.kept} />
      <Reasons title={text.undo.leftOut} files={plan.left_out} />
    </section>
  )
}

function Reasons({ title, files }: { title: string; files: readonly { path: string; reason: string }[] }) {
  if (!files.length) return null
  return (
    <div>
      <h3 className="font-medium">{title}</h3>
      <ul>
        {files.map((file) => (
          <li key={file.path}>
            <code className="break-all">{file.path}</code>
            <span className="text-muted">: {file.reason}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
