import { type FormEvent, useState } from 'react'
import { type Provider, useProviderActions } from '@/data/settings'
import { TestedActions } from '@/settings/FormParts'
import { text } from '@/text'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { notify } from '@/ui/toasts'

const words = text.providers
const OTHER = ''
const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'google', 'ollama']

interface Props {
  providers: readonly Provider[]
  /** The provider to change. Without it, the form offers a choice. */
  chosen?: Provider
  /** Preselect that the tested model becomes the default. */
  main?: boolean
  onClose: () => void
}

/** A dialog that tests a provider's key and address, and saves them if a model answers. */
export function ProviderForm({ providers, chosen, main = false, onClose }: Props) {
  const [name, setName] = useState(chosen?.name ?? providers.find((one) => one.needs_key)?.name ?? OTHER)
  const { save, remove } = useProviderActions()
  const provider = providers.find((one) => one.name === name)
  const isOwn = provider ? !provider.is_built_in : true

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const entered = new FormData(event.currentTarget)
    const value = (field: string) => String(entered.get(field) ?? '').trim()
    // unchanged values stay as they are in the file, where they may contain variables
    const changed = (field: 'base_url' | 'dialect') => (value(field) === provider?.[field] ? '' : value(field))
    save.mutate(
      {
        name: name === OTHER ? value('name') : name,
        body: {
          api_key: value('api_key'),
          base_url: changed('base_url'),
          dialect: changed('dialect'),
          model: value('model'),
          main: entered.get('main') === 'on',
        },
      },
      {
        onSuccess: ({ model, seconds }) => {
          notify(words.saved(model, text.time.seconds(seconds)))
          onClose()
        },
      },
    )
  }

  return (
    <Dialog title={chosen ? words.change(chosen.name) : words.add} onClose={onClose}>
      <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
        {!chosen && (
          <Field label={words.provider}>
            {(field) => (
              <select {...field} className={INPUT} value={name} onChange={(event) => setName(event.target.value)}>
                {providers
                  .filter((one) => one.is_built_in && one.name !== 'demo')
                  .map((one) => (
                    <option key={one.name} value={one.name}>
                      {one.name}
                    </option>
                  ))}
                <option value={OTHER}>{words.other}</option>
              </select>
            )}
          </Field>
        )}
        {name === OTHER && (
          <Field label={text.common.name} about={words.nameHelp}>
            {(field) => (
              <input {...field} name="name" required pattern="[A-Za-z0-9][A-Za-z0-9_\-]{0,63}" className={INPUT} />
            )}
          </Field>
        )}
        {(provider?.needs_key ?? true) || isOwn ? (
          <Field label={words.key} about={keyHelp(provider)}>
            {(field) => (
              <input
                {...field}
                name="api_key"
                type="password"
                autoComplete="off"
                spellCheck={false}
                required={!!provider?.needs_key && !provider.key}
                className={INPUT}
              />
            )}
          </Field>
        ) : null}
        {isOwn && (
          <>
            <Field label={words.address} about={words.addressHelp}>
              {(field) => (
                <input
                  {...field}
                  name="base_url"
                  type="url"
                  required={!provider}
                  defaultValue={provider?.base_url ?? ''}
                  placeholder="http://127.0.0.1:8000/v1"
                  className={INPUT}
                />
              )}
            </Field>
            <Field label={words.dialect}>
              {(field) => (
                <select {...field} name="dialect" defaultValue={provider?.dialect} className={INPUT}>
                  {[...new Set([...(provider ? [provider.dialect] : []), ...DIALECTS])].map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              )}
            </Field>
          </>
        )}
        <Field label={words.model} about={words.modelHelp}>
          {(field) => <input {...field} name="model" spellCheck={false} className={INPUT} />}
        </Field>
        <label className="flex min-h-9 cursor-pointer items-center gap-2 text-sm max-md:min-h-11">
          <input type="checkbox" name="main" defaultChecked={main} className="size-4 accent-accent" />
          {words.main}
        </label>
        <TestedActions
          save={save}
          remove={remove}
          onRemove={
            chosen?.is_saved
              ? (settled) => remove.mutate(chosen.name, { onSuccess: onClose, onSettled: settled })
              : undefined
          }
          onClose={onClose}
          words={words}
        />
      </form>
    </Dialog>
  )
}

function keyHelp(provider: Provider | undefined): string {
  if (provider?.key) return words.keyKept(provider.key)
  return provider?.variables.length ? words.keyHelp(provider.variables.join(', ')) : words.keySaved
}
