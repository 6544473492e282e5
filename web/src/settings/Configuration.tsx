import { clsx } from 'clsx'
import { useMemo, useState } from 'react'
import { type Config, useConfig } from '@/data/settings'
import { Area } from '@/settings/Area'
import { type Setting, settingsOf, written } from '@/settings/flat'
import { Value } from '@/settings/Value'
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
            Every value in force and what decides it. What you change here is written into{' '}
            <code className="font-mono">{data.home}/config.yaml</code>, comments and order kept; what you change there
            shows here.
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
