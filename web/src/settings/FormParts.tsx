import { useEffect, useRef, useState } from 'react'
import { Problem } from '@/api/client'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Failed } from '@/ui/States'

interface TextProps {
  name: string
  label: string
  about?: string
  value?: string | number | null
  error?: string
  /** Number of lines. Without it, the field has a single line. */
  rows?: number
  number?: boolean
  required?: boolean
}

/** A text field of a form. */
export function Text({ name, label, about, value, error, rows, number, required }: TextProps) {
  return (
    <Field label={label} about={about} error={error}>
      {(field) =>
        rows ? (
          <textarea {...field} name={name} rows={rows} defaultValue={value ?? ''} className={`${INPUT} py-2`} />
        ) : (
          <input
            {...field}
            name={name}
            required={required}
            autoComplete="off"
            spellCheck={false}
            type={number ? 'number' : 'text'}
            step={number ? 'any' : undefined}
            defaultValue={value ?? ''}
            className={INPUT}
          />
        )
      }
    </Field>
  )
}

interface DeletionProps {
  title: string
  about: string
  submit: string
  isPending: boolean
  error: Error | null
  remove: () => void
  onClose: () => void
}

/** Ask for confirmation before something is deleted. */
export function Deletion({ title, about, submit, isPending, error, remove, onClose }: DeletionProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5 text-sm">
        <p>{about}</p>
        {error && <Failed error={error} />}
        <div className="flex justify-end gap-2 pt-1">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button look="danger" disabled={isPending} onClick={remove}>
            {submit}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** Split an error response into messages by field and the rest, which is null if a field shows a message.
 *
 * `agents.NAME.tools.0` and `body.tools.0` are at `tools`.
 */
export function errorsOf(error: Error | null, fields: readonly string[]) {
  const found = error instanceof Problem ? error.errors : []
  const errors: Record<string, string> = Object.fromEntries(
    found.map(({ at, message }) => [at.split('.')[at.startsWith('body.') ? 1 : 2] ?? '', message]),
  )
  return { errors, rest: error && !Object.keys(errors).some((key) => fields.includes(key)) ? error : null }
}

interface Step {
  isPending: boolean
  error: Error | null
}

interface TestedActionsProps {
  save: Step
  remove: Step
  /** Remove the saved settings, and call `settled` afterwards. Without it, there is nothing to remove. */
  onRemove?: (settled: () => void) => void
  onClose: () => void
  words: { testing: string; remove: string; removeReally: string; submit: string }
}

/** The end of a form that tests settings before it saves them: progress, the error, and the buttons. */
export function TestedActions({ save, remove, onRemove, onClose, words }: TestedActionsProps) {
  const [isAsking, setIsAsking] = useState(false)
  const failure = save.error ?? remove.error
  const problem = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (failure) problem.current?.scrollIntoView({ block: 'nearest' })
  }, [failure])

  return (
    <>
      <p role="status" className="text-xs text-muted">
        {save.isPending && words.testing}
      </p>
      {failure && (
        <div ref={problem}>
          <Failed error={failure} />
        </div>
      )}
      <div className="flex flex-wrap justify-end gap-2 pt-1">
        {onRemove && (
          <Button
            look="danger"
            className="mr-auto"
            disabled={remove.isPending}
            onClick={() => (isAsking ? onRemove(() => setIsAsking(false)) : setIsAsking(true))}
          >
            {isAsking ? words.removeReally : words.remove}
          </Button>
        )}
        <Button look="quiet" onClick={onClose}>
          {text.common.cancel}
        </Button>
        <Button type="submit" look="primary" disabled={save.isPending}>
          {words.submit}
        </Button>
      </div>
    </>
  )
}
