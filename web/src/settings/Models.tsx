import { clsx } from 'clsx'
import { ChevronRight, Plug } from 'lucide-react'
import { useState } from 'react'
import { type Model, type Provider, useConfigChange, useMain, useModels, useProviders, useTrial } from '@/data/settings'
import { Area } from '@/settings/Area'
import { ProviderForm } from '@/settings/ProviderForm'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { INPUT } from '@/ui/Field'
import { short } from '@/ui/format'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { notifyError } from '@/ui/toasts'

/** All available models with capabilities, prices and a test button. */
export default function Models() {
  const models = useModels()
  return (
    <Area title={text.settings.models} about={text.models.about}>
      <Providers />
      {models.error ? (
        <Failed error={models.error} retry={() => void models.refetch()} />
      ) : models.data ? (
        <All models={models.data.data} problems={models.data.problems} />
      ) : (
        <Loading rows={6} />
      )}
    </Area>
  )
}

function Providers() {
  const { data } = useProviders()
  const [form, setForm] = useState<{ chosen?: Provider } | null>(null)
  if (!data?.data.length) return null
  const change = (chosen: Provider) => setForm({ chosen })
  const here = data.data.filter(isAvailable)
  const further = data.data.filter((provider) => !isAvailable(provider))
  return (
    <section aria-labelledby="providers" className="mb-7">
      <div className="mb-2 flex items-center justify-between gap-2">
        <h2 id="providers" className="text-sm font-semibold">
          {text.models.providers}
        </h2>
        <Button onClick={() => setForm({})}>{text.providers.add}</Button>
      </div>
      {form && <ProviderForm providers={data.data} {...form} onClose={() => setForm(null)} />}
      <Row providers={here} change={change} />
      {further.length > 0 && (
        <details className="mt-2 text-sm">
          <summary className="flex w-fit cursor-pointer items-center gap-1 py-1 text-muted hover:text-ink max-md:min-h-11">
            <ChevronRight size={14} aria-hidden className="transition-transform in-open:rotate-90" />
            {text.models.moreProviders(further.length)}
          </summary>
          <div className="mt-2">
            <Row providers={further} change={change} />
          </div>
        </details>
      )}
    </section>
  )
}

function isAvailable(provider: Provider): boolean {
  return provider.state === 'available'
}

function Row({ providers, change }: { providers: readonly Provider[]; change: (provider: Provider) => void }) {
  return (
    <ul className="flex flex-wrap gap-2">
      {providers.map((provider) => (
        <li key={provider.name}>
          <button
            type="button"
            title={text.providers.edit(provider.name)}
            onClick={() => change(provider)}
            className="flex min-h-9 items-center gap-2 rounded-lg border border-line px-3 py-2 text-sm hover:border-line-strong hover:bg-sunken max-md:min-h-11"
          >
            <span
              aria-hidden
              className={clsx(
                'size-2 shrink-0 rounded-full',
                isAvailable(provider) ? 'bg-good' : 'border-2 border-line-strong',
              )}
            />
            <span className="font-medium">{provider.name}</span>
            <span className="text-xs text-muted">{isAvailable(provider) ? provider.dialect : provider.state}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}

function All({ models, problems }: { models: readonly Model[]; problems: Record<string, string> }) {
  const [filter, setFilter] = useState('')
  const shown = models.filter((model) => model.id.toLowerCase().includes(filter.toLowerCase()))
  return (
    <>
      {Object.entries(problems).map(([name, problem]) => (
        <p
          key={name}
          className="mb-3 rounded-xl border border-warn/40 bg-warn-soft px-4 py-3 text-sm break-words text-warn"
        >
          <span className="font-medium">{name}</span>: {problem}
        </p>
      ))}
      {models.length === 0 ? (
        <Empty icon={Plug} title={text.models.empty}>
          {text.models.emptyBefore}
          <code className="font-mono">moot models choose</code>
          {text.models.emptyAfter}
        </Empty>
      ) : (
        <>
          <div className="mb-3 flex items-center gap-4">
            <input
              type="search"
              aria-label={text.models.filter}
              placeholder={text.models.filter}
              value={filter}
              onChange={(event) => setFilter(event.target.value)}
              className={clsx(INPUT, 'max-w-xs')}
            />
            <span role="status" className="ml-auto shrink-0 text-xs text-faint">
              {text.common.shown(shown.length, models.length)}
            </span>
          </div>
          <Table label={text.settings.models} columns={COLUMNS} rows={shown} keyOf={(model) => model.id} />
        </>
      )}
    </>
  )
}

const COLUMNS: readonly Column<Model>[] = [
  {
    head: text.models.model,
    cell: (model) => (
      <>
        <span className="font-medium break-all">{model.model}</span>
        <span className="block text-xs text-muted">{model.provider}</span>
        {model.note && <span className="mt-0.5 block max-w-xs text-xs text-muted">{model.note}</span>}
      </>
    ),
  },
  { head: text.models.context, figures: true, cell: (model) => (model.context ? short(model.context) : '?') },
  {
    head: text.models.capabilities,
    wide: true,
    cell: (model) => (
      <span className="flex flex-wrap gap-1">
        {model.modalities.map((one) => (
          <Badge key={one}>{one}</Badge>
        ))}
        {model.tools !== 'none' && <Badge>{text.models.tools}</Badge>}
        {model.reasoning && <Badge>{text.models.reasoning}</Badge>}
      </span>
    ),
  },
  { head: text.models.inputPrice, figures: true, wide: true, cell: (model) => dollars(model.price?.input) },
  { head: text.models.outputPrice, figures: true, wide: true, cell: (model) => dollars(model.price?.output) },
  { head: text.models.actions, pinned: true, cell: (model) => <ModelTest model={model} /> },
]

/** Convert nano-dollars per token to dollars per million tokens. */
function dollars(nano: number | null | undefined): string {
  return nano === null || nano === undefined ? '?' : String(nano / 1000)
}

function ModelTest({ model }: { model: Model }) {
  const trial = useTrial()
  const change = useConfigChange()
  const main = useMain()
  return (
    <div className="flex min-w-24 flex-col items-start gap-1.5">
      <div className="flex flex-wrap items-center gap-1">
        <Button
          onClick={() => trial.mutate({ provider: model.provider, model: model.model })}
          disabled={trial.isPending}
          aria-label={text.models.testModel(model.id)}
        >
          {trial.isPending ? text.models.testing : text.models.test}
        </Button>
        {main === model.id ? (
          <Badge look="accent">{text.models.default}</Badge>
        ) : (
          <Button
            look="quiet"
            aria-label={text.models.setDefaultModel(model.id)}
            disabled={change.isPending}
            onClick={() => change.mutate({ 'models.main': model.id }, { onError: notifyError })}
          >
            {text.models.setDefault}
          </Button>
        )}
      </div>
      <span role="status" className="max-w-60 text-xs break-words">
        {trial.data && (
          <span className="text-good">{text.models.responded(text.time.seconds(trial.data.seconds))}</span>
        )}
        {trial.error && <span className="text-danger">{trial.error.message}</span>}
      </span>
    </div>
  )
}
