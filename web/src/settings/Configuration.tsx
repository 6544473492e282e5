import { clsx } from 'clsx'
import { useMemo, useState } from 'react'
import { type Config, useConfig } from '@/data/settings'
import { Area } from '@/settings/Area'
import { type Setting, settingsOf, written } from '@/settings/flat'
import { Badge } from '@/ui/Badge'
import { INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'

/** Every value in force, and which layer, file and line decides it. */
export default function Configuration() {
  const { data, error, refetch } = useConfig()
  return (
    <Area
      title="Configuration"
      about={
        data && (
          <>
            Every value in force and what decides it. Change them in{' '}
            <code className="font-mono">{data.home}/config.yaml</code> or with{' '}
            <code className="font-mono">moot config set</code>; a running server takes the file in by itself.
          </>
        )
      }
    >
      {error ? (
        <Failed error={error} again={() => void refetch()} />
      ) : data ? (
        <Values config={data} />
      ) : (
        <Loading rows={8} />
      )}
    </Area>
  )
}

function Values({ config }: { config: Config }) {
  const [words, setWords] = useState('')
  const [own, setOwn] = useState(false)
  const all = useMemo(() => settingsOf(config.config, config.origin), [config])
  const low = words.toLowerCase()
  const shown = all.filter(
    ({ key, value, origin }) =>
      (!own || origin !== 'default') && (key.toLowerCase().includes(low) || written(value).toLowerCase().includes(low)),
  )
  const sections = new Map<string, Setting[]>()
  for (const setting of shown) {
    const name = setting.key.split('.')[0] ?? ''
    sections.set(name, [...(sections.get(name) ?? []), setting])
  }
  return (
    <>
      {config.error && <Refused error={config.error} />}
      {config.notes.map((note) => (
        <p key={note} className="mb-4 rounded-xl border border-warn/40 bg-warn-soft px-4 py-3 text-sm text-warn">
          {note}
        </p>
      ))}
      <div className="mb-5 flex flex-wrap items-center gap-x-5 gap-y-2">
        <input
          type="search"
          aria-label="Filter by key or value"
          placeholder="Filter by key or value"
          value={words}
          onChange={(event) => setWords(event.target.value)}
          className={clsx(INPUT, 'max-w-xs')}
        />
        <label className="flex min-h-9 cursor-pointer items-center gap-2 text-sm max-md:min-h-11">
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={own}
            onChange={(event) => setOwn(event.target.checked)}
          />
          Only what is not the default
        </label>
        <span role="status" className="ml-auto text-xs text-faint">
          {shown.length} of {all.length} values
        </span>
      </div>
      <div className="space-y-6">
        {[...sections].map(([name, settings]) => (
          <section key={name} aria-labelledby={`section-${name}`}>
            <h2 id={`section-${name}`} className="mb-2 text-sm font-semibold">
              {name}
            </h2>
            <dl className="divide-y divide-line overflow-hidden rounded-xl border border-line">
              {settings.map((setting) => (
                <Value key={setting.key} setting={setting} />
              ))}
            </dl>
          </section>
        ))}
      </div>
      {!shown.length && <p className="py-8 text-center text-sm text-muted">No value fits.</p>}
    </>
  )
}

function Value({ setting: { key, value, origin } }: { setting: Setting }) {
  const text = written(value)
  const isDefault = origin === 'default'
  return (
    <div className="grid gap-x-4 gap-y-1 px-4 py-2.5 text-sm sm:grid-cols-[minmax(9rem,15rem)_1fr_auto] sm:items-center">
      <dt className="font-mono text-xs break-all text-muted">{key}</dt>
      <dd className={clsx('min-w-0 font-mono text-xs break-words', isDefault ? 'text-muted' : 'text-ink')}>
        {text === '' ? <span className="font-sans text-faint">not set</span> : text}
      </dd>
      <dd className="min-w-0 sm:text-right">
        <Badge look={isDefault ? 'plain' : 'accent'} className="max-w-full whitespace-normal break-all">
          {origin}
        </Badge>
      </dd>
    </div>
  )
}

function Refused({ error }: { error: NonNullable<Config['error']> }) {
  const place = [error.file, error.line, error.column].filter((one) => one !== null).join(':')
  return (
    <div role="alert" className="mb-5 rounded-xl border border-danger/40 bg-danger-soft px-4 py-3 text-sm">
      <p className="font-medium text-danger">The file on disk is not in force; what was read before it still is.</p>
      <p className="mt-1 font-mono text-xs break-words">
        {place}: {error.message}
      </p>
    </div>
  )
}
