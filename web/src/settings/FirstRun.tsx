import { Check, Copy } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { useConfigChange, useMain, useModels, useProviders, useTrial } from '@/data/settings'
import { ProviderForm } from '@/settings/ProviderForm'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { useCopy } from '@/ui/copy'
import { Failed } from '@/ui/States'

/** A card that helps to choose the first model. Hidden once a model is configured. */
export function FirstRun() {
  const main = useMain()
  const { data: models } = useModels()
  const trial = useTrial()
  const change = useConfigChange()
  const { data: providers } = useProviders()
  const [isAdding, setIsAdding] = useState(false)
  if (main !== '' || !models) return null
  const found = models.data
  const problems = Object.entries(models.problems ?? {})
  return (
    <section
      aria-labelledby="first-run"
      className="mt-7 w-full rounded-2xl border border-line bg-raised p-5 text-left text-sm"
    >
      <h2 id="first-run" className="font-semibold">
        {found.length ? text.firstRun.title : text.firstRun.noModels}
      </h2>
      {found.length > 0 && (
        <>
          <p className="mt-1.5 text-muted">{text.firstRun.about}</p>
          <ul className="mt-3 flex flex-wrap gap-2">
            {found.slice(0, 6).map((model) => (
              <li key={model.id} className="max-w-full">
                <Button
                  className="max-w-full font-mono text-xs"
                  disabled={trial.isPending || change.isPending}
                  onClick={() =>
                    trial.mutate(
                      { provider: model.provider, model: model.model },
                      { onSuccess: () => change.mutate({ 'models.main': model.id }) },
                    )
                  }
                >
                  <span className="truncate">{text.firstRun.use(model.id)}</span>
                </Button>
              </li>
            ))}
            {found.length > 6 && (
              <li className="px-1 py-1 text-xs text-muted">
                <Link href="/settings/models" className="underline">
                  {text.firstRun.more(found.length - 6)}
                </Link>
              </li>
            )}
          </ul>
          <p role="status" className="mt-2 text-xs text-muted">
            {trial.isPending && text.firstRun.testing}
          </p>
          {(trial.error ?? change.error) && <Failed error={trial.error ?? change.error} className="mt-2" />}
        </>
      )}
      {problems.length > 0 && (
        <ul className="mt-3 space-y-1 text-xs text-muted">
          {problems.map(([name, problem]) => (
            <li key={name} className="break-words">
              <span className="font-medium text-ink">{name}</span>: {problem}
            </li>
          ))}
        </ul>
      )}
      <p className="mt-4">
        <Button look={found.length ? 'quiet' : 'primary'} onClick={() => setIsAdding(true)}>
          {text.firstRun.connect}
        </Button>
      </p>
      {isAdding && <ProviderForm providers={providers?.data ?? []} main onClose={() => setIsAdding(false)} />}
      <p className="mt-4 text-muted">{text.firstRun.terminal}</p>
      <Command command="moot models choose" />
    </section>
  )
}

function Command({ command }: { command: string }) {
  const { copied, copy } = useCopy()
  return (
    <div className="mt-2 flex items-center justify-between rounded-lg border border-line bg-sunken pl-3">
      <code className="font-mono text-sm">{command}</code>
      <IconButton label={copied ? text.common.copied : text.firstRun.copyCommand} onClick={() => copy(command)}>
        {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
      </IconButton>
    </div>
  )
}
