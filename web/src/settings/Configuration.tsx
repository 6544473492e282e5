import { clsx } from 'clsx'
import { useMemo, useState } from 'react'
import { type Config, useConfig } from '@/data/settings'
import { Area } from '@/settings/Area'
import { type Setting, settingsOf, written } from '@/settings/flat'
import { Value } from '@/settings/Value'
import { text } from '@/text'
import { INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'

/** All settings, and the layer, file and line that sets each one. */
export default function Configuration() {
  const { data, error, refetch } = useConfig()
  return (
    <Area
      title={text.settings.configuration}
      about={
        data && (
          <>
            {text.configuration.aboutBefore}
            <code className="font-mono">{data.home}/config.yaml</code>
            {text.configuration.aboutAfter}
          </>
        )
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : data ? (
        <Values config={data} />
      ) : (
        <Loading rows={8} />
      )}
    </Area>
  )
}

function Values({ config }: { config: Config }) {
  const [filter, setFilter] = useState('')
  const [own, setOwn] = useState(false)
  const all = useMemo(() => settingsOf(config.config, config.origin), [config])
  const low = filter.toLowerCase()
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
      {config.error && <ConfigError error={config.error} />}
      {config.notes.map((note) => (
        <p key={note} className="mb-4 rounded-xl border border-warn/40 bg-warn-soft px-4 py-3 text-sm text-warn">
          {note}
        </p>
      ))}
      <div className="mb-5 flex flex-wrap items-center gap-x-5 gap-y-2">
        <input
          type="search"
          aria-label={text.configuration.filter}
          placeholder={text.configuration.filter}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
          className={clsx(INPUT, 'max-w-xs')}
        />
        <label className="flex min-h-9 cursor-pointer items-center gap-2 text-sm max-md:min-h-11">
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={own}
            onChange={(event) => setOwn(event.target.checked)}
          />
          {text.configuration.onlyChanged}
        </label>
        <span role="status" className="ml-auto text-xs text-faint">
          {text.configuration.shown(shown.length, all.length)}
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
      {!shown.length && <p className="py-8 text-center text-sm text-muted">{text.configuration.none}</p>}
    </>
  )
}

function ConfigError({ error }: { error: NonNullable<Config['error']> }) {
  const place = [error.file, error.line, error.column].filter((one) => one !== null).join(':')
  return (
    <div role="alert" className="mb-5 rounded-xl border border-danger/40 bg-danger-soft px-4 py-3 text-sm">
      <p className="font-medium text-danger">{text.configuration.invalid}</p>
      <p className="mt-1 font-mono text-xs break-words">
        {place}: {error.message}
      </p>
    </div>
  )
}
