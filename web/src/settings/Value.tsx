import { clsx } from 'clsx'
import { Pencil } from 'lucide-react'
import { type FormEvent, useId, useState } from 'react'
import { useConfigChange } from '@/data/settings'
import {
  hasEntries,
  hidesSecret,
  isList,
  isSimple,
  type Json,
  layerOf,
  read,
  type Setting,
  written,
} from '@/settings/flat'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { INPUT } from '@/ui/Field'
import { Failed } from '@/ui/States'
import { notify, notifyError } from '@/ui/toasts'

const words = text.configuration

interface Props {
  setting: Setting
  /** The allowed values, if there are only a few. */
  choices: readonly string[] | undefined
}

/** One setting: its name, source and value. Switches and choices save at once, other values with a form. */
export function Value({ setting, choices }: Props) {
  const [editing, setEditing] = useState(false)
  const id = useId()
  const { key, value, origin } = setting
  const [label, about] = words.labels[key] ?? ['', '']
  const [layer, place] = layerOf(origin)
  const control = { id: `${id}-value`, 'aria-describedby': `${id}-about` }
  return (
    <li className="grid gap-x-6 gap-y-2 px-4 py-3 text-sm sm:grid-cols-[minmax(0,5fr)_minmax(0,4fr)] sm:items-center">
      <div className="min-w-0">
        <label htmlFor={control.id} className={clsx('block font-medium break-words', !label && 'font-mono text-xs')}>
          {label || key}
        </label>
        <p id={`${id}-about`} className="mt-0.5 text-xs break-words text-muted">
          {about && <span className="block">{about}</span>}
          {label && <span className="font-mono">{key}</span>}
          {origin === 'default' && <span className={clsx(label && 'ml-2')}>{layer}</span>}
          {origin !== 'default' && (
            <span className="mt-1 flex flex-wrap items-center gap-x-1.5">
              <Badge look="accent">{layer}</Badge>
              <span className="break-all">{place}</span>
            </span>
          )}
        </p>
      </div>
      {typeof value === 'boolean' ? (
        <Switch setting={setting} control={control} />
      ) : choices ? (
        <Choice setting={setting} choices={choices} control={control} />
      ) : editing ? (
        <Edit setting={setting} control={control} onEnd={() => setEditing(false)} />
      ) : (
        <div className="flex min-h-8 min-w-0 items-center gap-2 sm:justify-end">
          <Shown value={value} isDefault={origin === 'default'} />
          {(isSimple(value) || (isList(value) && !hasEntries(key))) && (
            <IconButton label={words.edit(label || key)} onClick={() => setEditing(true)}>
              <Pencil size={14} aria-hidden />
            </IconButton>
          )}
        </div>
      )}
    </li>
  )
}

type Control = { id: string; 'aria-describedby': string }

function Shown({ value, isDefault }: { value: Json; isDefault: boolean }) {
  const shown = isList(value) ? value.join('\n') : written(value)
  if (value === null || shown === '' || shown === '{}') return <span className="text-faint">{words.notSet}</span>
  return (
    <span
      className={clsx(
        'min-w-0 font-mono text-xs break-words whitespace-pre-line sm:text-right',
        isDefault ? 'text-muted' : 'text-ink',
      )}
    >
      {shown}
    </span>
  )
}

/** Save a value, and say if a source with higher precedence overrides it. */
function useSave(key: string) {
  const change = useConfigChange()
  const save = (value: Json, onEnd?: () => void) =>
    change.mutate(
      { [key]: value },
      {
        onSuccess: ({ origin }) => {
          const by = origin[key] ?? ''
          notify(by.startsWith('user') ? words.saved(key) : words.overridden(key, by))
          onEnd?.()
        },
        onError: onEnd ? undefined : notifyError,
      },
    )
  return { save, change }
}

function Switch({ setting: { key, value }, control }: { setting: Setting; control: Control }) {
  const { save, change } = useSave(key)
  return (
    <label className="flex min-h-9 items-center max-md:min-h-11 sm:justify-end">
      <input
        {...control}
        type="checkbox"
        role="switch"
        className="size-5 cursor-pointer accent-accent"
        checked={value === true}
        aria-checked={value === true}
        disabled={change.isPending}
        onChange={(event) => save(event.target.checked)}
      />
    </label>
  )
}

function Choice({
  setting: { key, value },
  choices,
  control,
}: Props & { choices: readonly string[]; control: Control }) {
  const { save, change } = useSave(key)
  return (
    <select
      {...control}
      className={clsx(INPUT, 'sm:ml-auto sm:max-w-56')}
      value={written(value)}
      disabled={change.isPending}
      onChange={(event) => save(event.target.value)}
    >
      {choices.map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>
  )
}

function Edit({ setting: { key, value }, control, onEnd }: { setting: Setting; control: Control; onEnd: () => void }) {
  const { save, change } = useSave(key)
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const entered = String(new FormData(event.currentTarget).get('value'))
    save(isList(value) ? linesOf(entered) : read(entered, value), onEnd)
  }
  const field = {
    ...control,
    name: 'value',
    autoFocus: true,
    autoComplete: 'off',
    spellCheck: false,
    onKeyDown: (event: React.KeyboardEvent) => event.key === 'Escape' && onEnd(),
  }
  return (
    <form onSubmit={submit} className="flex min-w-0 flex-wrap justify-end gap-2">
      {isList(value) ? (
        <textarea
          {...field}
          rows={Math.max(3, value.length + 1)}
          placeholder={words.oneEach}
          defaultValue={value.join('\n')}
          className={clsx(INPUT, 'py-2 font-mono text-xs')}
        />
      ) : (
        <input
          {...field}
          inputMode={typeof value === 'number' ? 'decimal' : undefined}
          list={key.startsWith('models.') ? 'models-of-settings' : undefined}
          defaultValue={value === null || hidesSecret(value) ? '' : written(value)}
          required={hidesSecret(value)}
          placeholder={hidesSecret(value) ? words.newValue : undefined}
          className={clsx(INPUT, 'font-mono text-xs')}
        />
      )}
      <Button look="quiet" onClick={onEnd}>
        {text.common.cancel}
      </Button>
      <Button type="submit" look="primary" disabled={change.isPending}>
        {text.common.save}
      </Button>
      {change.error && <Failed error={change.error} className="w-full" />}
    </form>
  )
}

function linesOf(entered: string): string[] {
  return entered
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}
