import { ChevronRight } from 'lucide-react'
import { useId } from 'react'
import { type Plugin, usePluginActions, usePlugins } from '@/data/plugins'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Failed, Loading } from '@/ui/States'

const words = text.plugins

/** The installed plugins with their state and content, and buttons to enable or disable them. */
export function Plugins() {
  const { data, error, refetch } = usePlugins()
  const heading = useId()
  return (
    <section aria-labelledby={heading} className="mt-8">
      <h2 id={heading} className="font-medium">
        {words.title}
      </h2>
      <p className="mt-1 mb-3 text-sm text-muted">{words.about}</p>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={2} />
      ) : data.data.length ? (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
          {data.data.map((plugin) => (
            <Entry key={plugin.name} plugin={plugin} />
          ))}
        </ul>
      ) : (
        <p className="rounded-xl border border-line px-4 py-3 text-sm text-muted">
          {words.empty} <code className="font-mono text-ink">{words.command}</code>
        </p>
      )}
    </section>
  )
}

const LOOKS = { enabled: 'good', disabled: 'plain', changed: 'warn', invalid: 'danger' } as const

function Entry({ plugin }: { plugin: Plugin }) {
  const { change } = usePluginActions(plugin.name)
  const isUsable = plugin.status === 'enabled' || plugin.status === 'disabled'
  const isEnabled = plugin.status === 'enabled'
  return (
    <li className="px-4 py-3" data-plugin={plugin.name}>
      <div className="flex flex-wrap items-center gap-2">
        <h3 className="font-mono text-sm font-medium break-all">{plugin.name}</h3>
        <Badge look={LOOKS[plugin.status]}>{words.statuses[plugin.status]}</Badge>
        <span className="text-xs text-muted">{plugin.version}</span>
        {isUsable && (
          <Button
            className="ml-auto"
            aria-label={isEnabled ? text.mcp.disableServer(plugin.name) : text.mcp.enableServer(plugin.name)}
            disabled={change.isPending}
            onClick={() => change.mutate(!isEnabled)}
          >
            {isEnabled ? text.mcp.disable : text.mcp.enable}
          </Button>
        )}
      </div>
      <p className="mt-1 text-sm break-words text-muted">{plugin.description}</p>
      {(change.error || plugin.problem) && (
        <p role="alert" className="mt-1 text-sm break-words text-danger">
          {change.error?.message ?? plugin.problem}
        </p>
      )}
      <details className="mt-1 text-xs">
        <summary className="flex w-fit cursor-pointer items-center gap-1 py-1 text-muted hover:text-ink max-md:min-h-11">
          <ChevronRight size={13} aria-hidden className="transition-transform in-open:rotate-90" />
          {words.content}
        </summary>
        <Content plugin={plugin} />
      </details>
    </li>
  )
}

function Content({ plugin }: { plugin: Plugin }) {
  const parts: [title: string, items: readonly string[]][] = [
    [words.commands, plugin.commands.map((name) => `/${name}`)],
    [words.agents, plugin.agents],
    [words.skills, plugin.skills],
    [words.hooks, plugin.hooks.map((hook) => `${hook.event} ${hook.matcher}: ${hook.command}`)],
    [
      words.servers,
      plugin.mcp_servers.map((server) => `${server.name}: ${server.url || [server.command, ...server.args].join(' ')}`),
    ],
    [words.notInstalled, plugin.not_installed],
  ]
  return (
    <dl className="mt-1 space-y-1.5 text-sm">
      {parts
        .filter(([, items]) => items.length > 0)
        .map(([title, items]) => (
          <div key={title}>
            <dt className="text-xs font-medium">{title}</dt>
            {items.map((item) => (
              <dd key={item} className="font-mono text-xs break-all text-muted">
                {item}
              </dd>
            ))}
          </div>
        ))}
    </dl>
  )
}
