import { type FormEvent, useId, useState } from 'react'
import { type SearchEngine, type SearchEngineFields, useSearchEngine, useSearchEngineActions } from '@/data/settings'
import { TestedActions } from '@/settings/FormParts'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'
import { notify } from '@/ui/toasts'

const words = text.searchEngine
type Provider = SearchEngineFields['provider']
const PROVIDERS = Object.keys(words.providers) as Provider[]
const OWN_ADDRESS: readonly Provider[] = ['searxng', 'custom']
const NEEDS_KEY: readonly Provider[] = ['brave', 'tavily']

/** The search engine that agents use, and a form to set it up. */
export function WebSearch() {
  const { data, error, refetch } = useSearchEngine()
  const heading = useId()
  const [open, setOpen] = useState(false)
  return (
    <section aria-labelledby={heading} className="mb-8">
      <h2 id={heading} className="font-medium">
        {words.title}
      </h2>
      <p className="mt-1 mb-3 text-sm text-muted">{words.about}</p>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={1} />
      ) : (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2 rounded-xl border border-line px-4 py-3 text-sm">
          {data.provider ? (
            <>
              <span className="font-medium">{words.providers[data.provider]}</span>
              {data.is_available || <Badge look="danger">{words.unfinished}</Badge>}
              <span className="min-w-0 break-all text-muted">{data.base_url}</span>
            </>
          ) : (
            <span className="text-muted">{words.empty}</span>
          )}
          <Button
            className="ml-auto"
            aria-label={data.provider ? words.changeLabel : text.webSearch.setUp}
            onClick={() => setOpen(true)}
          >
            {data.provider ? words.change : words.setUp}
          </Button>
        </div>
      )}
      {open && data && <Form engine={data} onClose={() => setOpen(false)} />}
    </section>
  )
}

/** A dialog that tests a search engine with a search, and saves it if that finds something. */
function Form({ engine, onClose }: { engine: SearchEngine; onClose: () => void }) {
  const [provider, setProvider] = useState<Provider>(engine.provider || 'brave')
  const { save, remove } = useSearchEngineActions()
  const isCurrent = provider === engine.provider
  const hasAddress = OWN_ADDRESS.includes(provider) || (isCurrent && engine.base_url !== '')
  const keptKey = isCurrent ? engine.key : ''

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const entered = new FormData(event.currentTarget)
    const value = (field: string) => String(entered.get(field) ?? '').trim()
    save.mutate(
      { provider, api_key: value('api_key'), base_url: value('base_url') },
      {
        onSuccess: ({ results }) => {
          notify(words.saved(results[0]?.title ?? ''))
          onClose()
        },
      },
    )
  }

  return (
    <Dialog title={words.dialog} onClose={onClose}>
      <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
        <Field label={words.provider}>
          {(field) => (
            <select
              {...field}
              className={INPUT}
              value={provider}
              onChange={(event) => setProvider(event.target.value as Provider)}
            >
              {PROVIDERS.map((one) => (
                <option key={one} value={one}>
                  {words.providers[one]}
                </option>
              ))}
            </select>
          )}
        </Field>
        {hasAddress && (
          <Field label={words.address} about={provider === 'custom' ? words.customHelp : words.addressHelp}>
            {(field) => (
              <input
                {...field}
                key={provider}
                name="base_url"
                type={provider === 'custom' ? 'text' : 'url'}
                inputMode="url"
                spellCheck={false}
                required={OWN_ADDRESS.includes(provider)}
                defaultValue={isCurrent ? engine.base_url : ''}
                placeholder={provider === 'custom' ? 'https://search.example.com/?q={query}' : 'http://127.0.0.1:8888'}
                className={INPUT}
              />
            )}
          </Field>
        )}
        <Field
          label={words.key}
          about={keptKey ? words.keyKept(keptKey) : `${words.keyHelp[provider]} ${words.keySaved}`}
        >
          {(field) => (
            <input
              {...field}
              key={provider}
              name="api_key"
              type="password"
              autoComplete="off"
              spellCheck={false}
              required={NEEDS_KEY.includes(provider) && !keptKey}
              className={INPUT}
            />
          )}
        </Field>
        <TestedActions
          save={save}
          remove={remove}
          onRemove={
            engine.is_saved
              ? (settled) => remove.mutate(undefined, { onSuccess: onClose, onSettled: settled })
              : undefined
          }
          onClose={onClose}
          words={words}
        />
      </form>
    </Dialog>
  )
}
