import { Check, Copy } from 'lucide-react'
import { Link } from 'wouter'
import { useConfig, useModels } from '@/data/settings'
import { IconButton } from '@/ui/Button'
import { useCopy } from '@/ui/copy'

/** Where no model was ever chosen: what can be had here, and how to choose. Nothing once one is. */
export function FirstRun() {
  const { data: config } = useConfig()
  const { data: models } = useModels()
  const chosen = config?.config.models
  if (!config || !models || (chosen && typeof chosen === 'object' && 'main' in chosen && chosen.main)) return null
  const found = models.data
  const problems = Object.entries(models.problems ?? {})
  return (
    <section
      aria-labelledby="first-run"
      className="mt-7 w-full rounded-2xl border border-line bg-raised p-5 text-left text-sm"
    >
      <h2 id="first-run" className="font-semibold">
        {found.length ? 'No model is chosen yet' : 'No model can be had yet'}
      </h2>
      {found.length > 0 && (
        <>
          <p className="mt-1.5 text-muted">Until you choose, the first of these answers:</p>
          <ul className="mt-2 flex flex-wrap gap-1.5">
            {found.slice(0, 6).map((model) => (
              <li
                key={model.id}
                className="max-w-full truncate rounded-md border border-line bg-sunken px-2 py-1 font-mono text-xs"
              >
                {model.id}
              </li>
            ))}
            {found.length > 6 && (
              <li className="px-1 py-1 text-xs text-muted">
                <Link href="/settings/models" className="underline">
                  and {found.length - 6} more
                </Link>
              </li>
            )}
          </ul>
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
      <p className="mt-4 text-muted">
        This looks for keys, local servers and the embedded model, tries the one you pick and writes it down:
      </p>
      <Command text="moot models choose" />
    </section>
  )
}

function Command({ text }: { text: string }) {
  const { copied, copy } = useCopy()
  return (
    <div className="mt-2 flex items-center justify-between rounded-lg border border-line bg-sunken pl-3">
      <code className="font-mono text-sm">{text}</code>
      <IconButton label={copied ? 'Copied' : 'Copy the command'} onClick={() => copy(text)}>
        {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
      </IconButton>
    </div>
  )
}
