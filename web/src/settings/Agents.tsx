import { Bot, ChevronRight } from 'lucide-react'
import { type Agent, useAgents } from '@/data/settings'
import { Area } from '@/settings/Area'
import { Badge } from '@/ui/Badge'
import { Empty, Failed, Loading } from '@/ui/States'

/** Every agent of the configuration with all that makes it what it is. */
export default function Agents() {
  const { data, error, refetch } = useAgents()
  return (
    <Area
      title="Agents"
      about="An agent is a name for a prompt, a model, tools and rules. They stand under `agents` in the configuration."
    >
      {error ? (
        <Failed error={error} again={() => void refetch()} />
      ) : data ? (
        <All agents={data.data} />
      ) : (
        <Loading rows={3} />
      )}
    </Area>
  )
}

function All({ agents }: { agents: readonly Agent[] }) {
  if (!agents.length) return <Empty icon={Bot} title="No agent is defined" />
  return (
    <ul className="grid gap-3 md:grid-cols-2">
      {agents.map((agent) => (
        <li key={agent.name} className="min-w-0 rounded-xl border border-line bg-raised p-4">
          <div className="flex items-center gap-2">
            <h2 className="min-w-0 truncate text-sm font-semibold">{agent.name}</h2>
            {agent.agent_type !== 'moot' && <Badge>{agent.agent_type}</Badge>}
            <Badge look="accent" className="ml-auto max-w-44 truncate">
              {agent.model || 'main'}
            </Badge>
          </div>
          {agent.description && <p className="mt-1 text-sm text-muted">{agent.description}</p>}
          <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-xs">
            <Fact name="Role" value={agent.role} />
            <Fact name="Temperature" value={agent.temperature} />
            <Fact name="Effort" value={agent.effort} />
            <Fact name="Steps at most" value={agent.max_steps} />
            <Fact name="Fallback" value={agent.fallback.join(', ')} />
            <Fact name="Tools" value={agent.tools === null ? 'the usual ones' : agent.tools.join(', ') || 'none'} />
          </dl>
          {agent.instructions && (
            <details className="mt-3 text-xs">
              <summary className="flex w-fit cursor-pointer items-center gap-1 py-1 text-muted hover:text-ink max-md:min-h-11">
                <ChevronRight size={13} aria-hidden className="transition-transform in-open:rotate-90" />
                Instructions
              </summary>
              <pre
                // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
                tabIndex={0}
                className="mt-1 max-h-60 overflow-auto rounded-lg bg-sunken p-3 font-mono whitespace-pre-wrap"
              >
                {agent.instructions}
              </pre>
            </details>
          )}
        </li>
      ))}
    </ul>
  )
}

function Fact({ name, value }: { name: string; value: string | number | null }) {
  if (value === null || value === '') return null
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 break-words">{value}</dd>
    </>
  )
}
