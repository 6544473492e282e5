import { clsx } from 'clsx'
import { Pencil } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useConfigChange } from '@/data/settings'
import { hidesSecret, isSimple, layerOf, read, type Setting, written } from '@/settings/flat'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { INPUT } from '@/ui/Field'
import { Failed } from '@/ui/States'
import { notify } from '@/ui/toasts'

/** One setting: its value, its source and, unless it is a list, an edit button. */
export function Value({ setting }: { setting: Setting }) {
  const [editing, setEditing] = useState(false)
  const { key, value, origin } = setting
  const isDefault = origin === 'default'
  const shown = written(value)
  const [layer, place] = layerOf(origin)
  return (
    <div className="grid gap-x-4 gap-y-1 px-4 py-1.5 text-sm sm:grid-cols-[minmax(0,5fr)_minmax(0,6fr)_minmax(0,6fr)_2rem] sm:items-center">
      <dt className="font-mono text-xs break-all text-muted max-sm:pt-1">{key}</dt>
      <dd className={clsx('min-w-0 font-mono text-xs break-words', isDefault ? 'text-muted' : 'text-ink')}>
        {editing ? (
          <Edit setting={setting} onEnd={() => setEditing(false)} />
        ) : shown === '' ? (
          <span className="font-sans text-faint">{text.configuration.notSet}</span>
        ) : (
          shown
        )}
      </dd>
      <dd className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-0.5 sm:justify-end sm:text-right">
        <Badge look={isDefault ? 'plain' : 'accent'}>{layer}</Badge>
        {place && <span className="min-w-0 text-xs break-all text-muted">{place}</span>}
      </dd>
      <dd className="flex min-h-8 items-center sm:justify-end">
        {isSimple(value) && (
          <IconButton label={text.configuration.edit(key)} onClick={() => setEditing(true)}>
            <Pencil size={14} aria-hidden />
          </IconButton>
        )}
      </dd>
    </div>
  )
}

function Edit({ setting: { key, value }, onEnd }: { setting: Setting; onEnd: () => void }) {
  const change = useConfigChange()
  function save(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const entered = String(new FormData(event.currentTarget).get('value'))
    change.mutate(
      { [key]: read(entered, value) },
      {
        onSuccess: ({ origin }) => {
          const by = origin[key] ?? ''
          notify(by.startsWith('user') ? text.configuration.saved(key) : text.configuration.overridden(key, by))
          onEnd()
        },
      },
    )
  }
  return (
    <form onSubmit={save} className="flex flex-wrap gap-2 py-1 font-sans">
      <input
        // biome-ignore lint/a11y/noAutofocus: the user just clicked Edit
        autoFocus
        name="value"
        aria-label={key}
        defaultValue={hidesSecret(value) ? '' : written(value)}
        required={hidesSecret(value)}
        placeholder={hidesSecret(value) ? text.configuration.newValue : undefined}
        autoComplete="off"
        spellCheck={false}
        onKeyDown={(event) => event.key === 'Escape' && onEnd()}
        className={clsx(INPUT, 'max-w-72 min-w-40 grow font-mono text-xs')}
      />
      <Button type="submit" look="primary" disabled={change.isPending}>
        {text.common.save}
      </Button>
      <Button look="quiet" onClick={onEnd}>
        {text.common.cancel}
      </Button>
      {change.error && <Failed error={change.error} className="w-full" />}
    </form>
  )
}
