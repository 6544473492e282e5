import { ChevronRight } from 'lucide-react'
import { useId } from 'react'
import { type McpServer, type McpTool, useMcpActions, useMcpServers } from '@/data/mcp'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Failed, Loading } from '@/ui/States'

/** The configured MCP servers with their state, buttons to enable or disable them, and tools to accept. */
export function McpServers() {
  const { data, error, refetch } = useMcpServers()
  const heading = useId()
  return (
    <section aria-labelledby={heading} className="mt-8">
      <h2 id={heading} className="font-medium">
        {text.mcp.title}
      </h2>
      <p className="mt-1 mb-3 text-sm text-muted">{text.mcp.about}</p>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={2} />
      ) : data.data.length ? (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
          {data.data.map((server) => (
            <Entry key={server.name} server={server} />
          ))}
        </ul>
      ) : (
        <p className="rounded-xl border border-line px-4 py-3 text-sm text-muted">
          {text.mcp.empty} <code className="font-mono text-ink">{text.mcp.command}</code>
        </p>
      )}
    </section>
  )
}

const LOOKS = {
  connected: 'good',
  starting: 'plain',
  failed: 'danger',
  disabled: 'plain',
  'not started': 'plain',
} as const

function Entry({ server }: { server: McpServer }) {
  const { change, connect, accept } = useMcpActions(server.name)
  const changed = server.tools.filter((tool) => tool.is_changed)
  const usable = server.tools.filter((tool) => !tool.is_changed)
  const failure = connect.error ?? change.error ?? accept.error
  return (
    <li className="px-4 py-3" data-mcp={server.name}>
      <div className="flex flex-wrap items-center gap-2">
        <h3 className="font-mono text-sm font-medium">{server.name}</h3>
        <Badge look={LOOKS[server.status]}>{text.mcp.states[server.status]}</Badge>
        <span className="text-xs text-muted">{text.mcp.count(usable.length)}</span>
        <span className="ml-auto flex gap-2">
          {server.enabled && (
            <Button
              aria-label={text.mcp.connectTo(server.name)}
              disabled={connect.isPending}
              onClick={() => connect.mutate()}
            >
              {connect.isPending ? text.mcp.connecting : text.mcp.connect}
            </Button>
          )}
          <Button
            aria-label={server.enabled ? text.mcp.disableServer(server.name) : text.mcp.enableServer(server.name)}
            disabled={change.isPending}
            onClick={() => change.mutate(!server.enabled)}
          >
            {server.enabled ? text.mcp.disable : text.mcp.enable}
          </Button>
        </span>
      </div>
      <p className="mt-1 font-mono text-xs break-all text-muted">{server.place}</p>
      {(failure || server.error) && (
        <p role="alert" className="mt-1 text-sm break-words text-danger">
          {failure?.message ?? server.error}
        </p>
      )}
      {changed.length > 0 && (
        <div className="mt-2 rounded-lg border border-warn/40 bg-warn-soft p-3">
          <p className="text-sm">{text.mcp.changed}</p>
          <Definitions tools={changed} />
          <Button
            look="primary"
            className="mt-2"
            disabled={accept.isPending}
            onClick={() => accept.mutate(changed.map((tool) => tool.digest))}
          >
            {text.mcp.accept(changed.length)}
          </Button>
        </div>
      )}
      {usable.length > 0 && (
        <details className="mt-1 text-xs">
          <summary className="flex w-fit cursor-pointer items-center gap-1 py-1 text-muted hover:text-ink max-md:min-h-11">
            <ChevronRight size={13} aria-hidden className="transition-transform in-open:rotate-90" />
            {text.mcp.tools}
          </summary>
          <Definitions tools={usable} />
        </details>
      )}
    </li>
  )
}

function Definitions({ tools }: { tools: readonly McpTool[] }) {
  return (
    <dl className="mt-1 space-y-1.5 text-sm">
      {tools.map((tool) => (
        <div key={tool.name}>
          <dt className="font-mono text-xs font-medium break-all">{tool.name}</dt>
          <dd className="break-words whitespace-pre-wrap text-muted">{tool.description || tool.title}</dd>
        </div>
      ))}
    </dl>
  )
}
