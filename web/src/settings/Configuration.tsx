import { clsx } from 'clsx'
import { useMemo, useState } from 'react'
import { type Config, useConfig, useModels } from '@/data/settings'
import { Area } from '@/settings/Area'
import { type Setting, settingsOf, written } from '@/settings/flat'
import { Value } from '@/settings/Value'
import { text } from '@/text'
import { INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'

const words = text.configuration
const SECTIONS: Readonly<Record<string, keyof typeof words.groups>> = {
  models: 'models',
  permissions: 'permissions',
  sandbox: 'permissions',
  limits: 'limits',
  imports: 'history',
  retention: 'history',
  server: 'server',
  storage: 'server',
  ui: 'ui',
}

/** All settings in groups, each with its value and the layer, file and line that set it. */
export default function Configuration() {
  const { data, error, refetch } = useConfig()
  return (
    <Area
      title={text.settings.configuration}
      about={
        data && (
          <>
            {words.aboutBefore}
            <code className="font-mono">{data.home}/config.yaml</code>
            {words.aboutAfter}
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
  const models = useModels()
  const all = useMemo(() => settingsOf(config.config, config.origin), [config])
  const low = filter.toLowerCase()
  const shown = all.filter(
    (setting) =>
      (!own || setting.origin !== 'default') && searched(setting).some((one) => one.toLowerCase().includes(low)),
  )
  const groups = Object.entries({ ...words.groups, other: words.other })
    .map(([name, title]) => ({ name, title, settings: shown.filter(({ key }) => groupOf(key) === name) }))
    .filter(({ settings }) => settings.length > 0)
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
          aria-label={words.filter}
          placeholder={words.filter}
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
          {words.onlyChanged}
        </label>
        <span role="status" className="ml-auto text-xs text-faint">
          {words.shown(shown.length, all.length)}
        </span>
      </div>
      <datalist id="models-of-settings">
        {models.data?.data.map((model) => (
          <option key={model.id} value={model.id} />
        ))}
      </datalist>
      <div className="space-y-6">
        {groups.map(({ name, title, settings }) => (
          <section key={name} aria-labelledby={`section-${name}`}>
            <h2 id={`section-${name}`} className="mb-2 text-sm font-semibold">
              {title}
            </h2>
            <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
              {settings.map((setting) => (
                <Value key={setting.key} setting={setting} choices={config.choices[setting.key]} />
              ))}
            </ul>
          </section>
        ))}
      </div>
      {!shown.length && <p className="py-8 text-center text-sm text-muted">{words.none}</p>}
    </>
  )
}

function groupOf(key: string): string {
  return (words.labels[key] && SECTIONS[key.split('.')[0] ?? '']) || 'other'
}

/** Return the texts of a setting in which the filter looks. */
function searched({ key, value }: Setting): string[] {
  return [key, written(value), ...(words.labels[key] ?? [])]
}

function ConfigError({ error }: { error: NonNullable<Config['error']> }) {
  const place = [error.file, error.line, error.column].filter((one) => one !== null).join(':')
  return (
    <div role="alert" className="mb-5 rounded-xl border border-danger/40 bg-danger-soft px-4 py-3 text-sm">
      <p className="font-medium text-danger">{words.invalid}</p>
      <p className="mt-1 font-mono text-xs break-words">
        {place}: {error.message}
      </p>
    </div>
  )
}
