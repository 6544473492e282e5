import { type FormEvent, useState } from 'react'
import type { Conversation } from '@/api/types'
import { useBulkActions, useListChoices } from '@/data/conversations'
import { titleOf } from '@/lists/rows'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'

const TAG = /^[\p{L}\p{N}][\p{L}\p{N}_-]{0,29}$/u
const MOST = 20

interface Props {
  conversations: readonly Conversation[]
  onClose: () => void
  onSaved?: () => void
}

/** Change the tags of conversations. A tag that only some of them have keeps its state until it is clicked. */
export default function TagsDialog({ conversations, onClose, onSaved }: Props) {
  const { data } = useListChoices()
  const { tag: save } = useBulkActions()
  const [changed, setChanged] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [value, setValue] = useState('')
  const [error, setError] = useState('')
  const count = (tag: string) => conversations.filter(({ tags }) => tags.includes(tag)).length
  const known = [...(data?.tags ?? []), ...conversations.flatMap(({ tags }) => tags), ...changed.keys()]
  const tags = [...new Set(known)].sort()

  /** Return the changes with the tags in the field. Show an error and return null if one is invalid. */
  function entered(): ReadonlyMap<string, boolean> | null {
    const words = value
      .toLowerCase()
      .split(/[\s,，、]+/)
      .filter(Boolean)
    const wrong = words.find((word) => !TAG.test(word))
    if (wrong) {
      setError(text.tags.invalid(wrong))
      return null
    }
    return new Map([...changed, ...words.map((word) => [word, true] as const)])
  }

  function add() {
    const all = entered()
    if (!all) return
    setChanged(all)
    setValue('')
  }

  function submit(event: FormEvent) {
    event.preventDefault()
    const all = entered()
    if (!all) return
    const adding = [...all].flatMap(([tag, on]) => (on ? [tag] : []))
    const removing = [...all].flatMap(([tag, on]) => (on ? [] : [tag]))
    const most = Math.max(
      ...conversations.map((one) => new Set([...one.tags.filter((tag) => !removing.includes(tag)), ...adding]).size),
    )
    if (most > MOST) {
      setError(text.tags.tooMany(MOST))
      return
    }
    if (all.size) void save(conversations, adding, removing)
    onSaved?.()
    onClose()
  }

  const [only] = conversations
  return (
    <Dialog
      title={conversations.length === 1 ? text.tags.title : text.tags.of(conversations.length)}
      onClose={onClose}
      className="max-w-md"
    >
      <form onSubmit={submit} className="flex min-h-0 flex-col gap-4 overflow-y-auto p-5 text-sm">
        {conversations.length === 1 && only && <p className="truncate text-muted">{titleOf(only)}</p>}
        <Field label={text.tags.add} about={text.tags.about} error={error}>
          {(field) => (
            <input
              {...field}
              autoFocus
              autoComplete="off"
              autoCapitalize="none"
              value={value}
              onChange={(event) => {
                setValue(event.target.value)
                setError('')
              }}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' || event.nativeEvent.isComposing || !value.trim()) return
                event.preventDefault() // adds the tag; Enter in the empty field saves
                add()
              }}
              className={INPUT}
            />
          )}
        </Field>
        {tags.length > 0 && (
          <ul aria-label={text.tags.title} className="flex flex-wrap gap-1.5">
            {tags.map((tag) => {
              const own = count(tag)
              const on = changed.get(tag) ?? own === conversations.length
              const some = !changed.has(tag) && own > 0 && !on
              return (
                <li key={tag}>
                  <label className="flex min-h-8 cursor-pointer items-center gap-2 rounded-lg border border-line px-2.5 hover:bg-hover has-checked:border-accent/40 has-checked:bg-accent-soft max-md:min-h-11">
                    <input
                      type="checkbox"
                      checked={on}
                      ref={(box) => {
                        if (box) box.indeterminate = some
                      }}
                      onChange={() => setChanged(new Map([...changed, [tag, !on]]))}
                      className="size-4 accent-accent"
                    />
                    {tag}
                  </label>
                </li>
              )
            })}
          </ul>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary">
            {text.common.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
