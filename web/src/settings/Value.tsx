import { clsx } from 'clsx'
import { Pencil } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useConfigChange } from '@/data/settings'
import { hidesSecret, isSimple, read, type Setting, written } from '@/settings/flat'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { INPUT } from '@/ui/Field'
import { Failed } from '@/ui/States'
import { say } from '@/ui/toasts'

/** A value in force, what decides it, and for what is no list a way to write another one into the file. */
export function Value({ setting }: { setting: Setting }) {
  const [editing, setEditing] = useState(false)
  const { key, value, origin } = setting
  const isDefault = origin === 'default'
  const text = written(value)
  return (
    <div className="grid gap-x-4 gap-y-1 px-4 py-1.5 text-sm sm:grid-cols-[minmax(9rem,15rem)_1fr_auto] sm:items-center">
      <dt className="font-mono text-xs break-all text-muted max-sm:pt-1">{key}</dt>
      <dd className={clsx('min-w-0 font-mono text-xs break-words', isDefault ? 'text-muted' : 'text-ink')}>
        {editing ? (
          <Edit setting={setting} onEnd={() => setEditing(false)} />
        ) : text === '' ? (
          <span className="font-sans text-faint">not set</span>
        ) : (
          text
        )}
      </dd>
      <dd className="flex min-h-8 min-w-0 items-center gap-1 sm:justify-end">
        <Badge look={isDefault ? 'plain' : 'accent'} className="max-w-full break-all whitespace-normal">
          {origin}
        </Badge>
        {isSimple(value) ? (
          <IconButton label={`Change ${key}`} className="max-sm:ml-auto" onClick={() => setEditing(true)}>
            <Pencil size={14} aria-hidden />
          </IconButton>
        ) : (
          <span className="w-8 max-sm:hidden" />
        )}
      </dd>
    </div>
  )
}

function Edit({ setting: { key, value }, onEnd }: { setting: Setting; onEnd: () => void }) {
  const change = useConfigChange()
  function save(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const text = String(new FormData(event.currentTarget).get('value'))
    change.mutate(
      { [key]: read(text, value) },
      {
        onSuccess: ({ origin }) => {
          const by = origin[key] ?? ''
          say(
            by.startsWith('user') ? `${key} is set` : `${key} is written, but ${by || 'a layer above'} decides it now`,
          )
          onEnd()
        },
      },
    )
  }
  return (
    <form onSubmit={save} className="flex flex-wrap gap-2 py-1 font-sans">
      <input
        // biome-ignore lint/a11y/noAutofocus: the person asked for this field just now
        autoFocus
        name="value"
        aria-label={key}
        defaultValue={hidesSecret(value) ? '' : written(value)}
        required={hidesSecret(value)}
        placeholder={hidesSecret(value) ? 'A new value' : undefined}
        autoComplete="off"
        spellCheck={false}
        onKeyDown={(event) => event.key === 'Escape' && onEnd()}
        className={clsx(INPUT, 'max-w-72 min-w-40 grow font-mono text-xs')}
      />
      <Button type="submit" look="primary" disabled={change.isPending}>
        Save
      </Button>
      <Button look="quiet" onClick={onEnd}>
        Cancel
      </Button>
      {change.error && <Failed error={change.error} className="w-full" />}
    </form>
  )
}
