import { Bot, Check, ChevronRight, Copy } from 'lucide-react'
import { useState } from 'react'
import { useSession } from '@/app/session'
import { type Agent, useAgents } from '@/data/settings'
import { AgentDeletion, AgentForm, type Shown } from '@/settings/AgentForm'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button, IconButton } from '@/ui/Button'
import { useCopy } from '@/ui/copy'
import { Empty, Failed, Loading } from '@/ui/States'

/** All available agents with their settings, followed by agents that can be installed. */
export default function Agents() {
  const { data, error, refetch } = useAgents(true)
  const session = useSession()
  const [shown, setShown] = useState<Shown | null>(null)
  const [deleting, setDeleting] = useState<Agent | null>(null)
  const mayChange = session.data?.scopes.includes('machine') ?? false
  return (
    <Area
      title={text.settings.agents}
      about={text.agents.about}
      actions={
        mayChange && (
          <Button look="primary" onClick={() => setShown({ kind: 'new' })}>
            {text.agents.new}
          </Button>
        )
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : data ? (
        <>
          <All
            agents={data.data.filter((agent) => agent.ready)}
            actions={mayChange ? { show: setShown, remove: setDeleting } : null}
          />
          <NotInstalled agents={data.data.filter((agent) => !agent.ready)} />
        </>
      ) : (
        <Loading rows={3} />
      )}
      {shown && <AgentForm shown={shown} onClose={() => setShown(null)} />}
      {deleting && <AgentDeletion agent={deleting} onClose={() => setDeleting(null)} />}
    </Area>
  )
}

interface Actions {
  show: (shown: Shown) => void
  remove: (agent: Agent) => void
}

/** Buttons of an agent. Only agents that are files in moot's home folder can be changed. */
function Buttons({ agent, actions }: { agent: Agent; actions: Actions }) {
  return (
    <div className="mt-3 flex flex-wrap gap-2">
      {agent.source === 'home' && (
        <Button onClick={() => actions.show({ kind: 'edit', agent })} aria-label={text.agents.edit(agent.name)}>
          {text.common.edit}
        </Button>
      )}
      <Button onClick={() => actions.show({ kind: 'copy', agent })} aria-label={text.agents.copyOf(agent.name)}>
        {text.agents.copyAgent}
      </Button>
      {agent.source === 'home' && (
        <Button look="danger" onClick={() => actions.remove(agent)} aria-label={text.agents.delete(agent.name)}>
          {text.common.delete}
        </Button>
      )}
    </div>
  )
}

function All({ agents, actions }: { agents: readonly Agent[]; actions: Actions | null }) {
  if (!agents.length) return <Empty icon={Bot} title={text.agents.empty} />
  return (
    <ul className="grid gap-3 md:grid-cols-2">
      {agents.map((agent) => (
        <li key={agent.name} className="min-w-0 rounded-xl border border-line bg-raised p-4">
          <div className="flex items-center gap-2">
            <h2 className="min-w-0 truncate text-sm font-semibold">{agent.name}</h2>
            {!['moot', agent.name].includes(agent.agent_type) && <Badge>{agent.agent_type}</Badge>}
            <Badge>{text.agents.sources[agent.source]}</Badge>
            {agent.beta && <Badge>{text.agents.beta}</Badge>}
            <Badge look="accent" className="ml-auto max-w-44 truncate">
              {agent.model || (agent.agent_type === 'moot' ? text.agents.defaultModel : text.agents.ownModel)}
            </Badge>
          </div>
          {agent.description && <p className="mt-1 text-sm text-muted">{agent.description}</p>}
          <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-xs">
            {agent.agent_type === 'moot' && <Fact name={text.agents.role} value={agent.role} />}
            <Fact name={text.agents.temperature} value={agent.temperature} />
            <Fact name={text.agents.effort} value={agent.effort} />
            <Fact name={text.agents.maxSteps} value={agent.max_steps} />
            <Fact name={text.agents.fallback} value={agent.fallback.join(', ')} />
            <Fact name={text.agents.tools} value={toolsOf(agent)} />
          </dl>
          {agent.instructions && (
            <details className="mt-3 text-xs">
              <summary className="flex w-fit cursor-pointer items-center gap-1 py-1 text-muted hover:text-ink max-md:min-h-11">
                <ChevronRight size={13} aria-hidden className="transition-transform in-open:rotate-90" />
                {text.agents.instructions}
              </summary>
              <pre
                // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
                tabIndex={0}
                className="mt-1 max-h-60 overflow-auto rounded-lg bg-sunken p-3 font-mono whitespace-pre-wrap"
              >
                {agent.instructions}
              </pre>
            </details>
          )}
          {actions && <Buttons agent={agent} actions={actions} />}
        </li>
      ))}
    </ul>
  )
}

function toolsOf(agent: Agent): string {
  if (agent.tools === null) return agent.agent_type === 'moot' ? text.agents.defaultTools : text.agents.ownTools
  return agent.tools.join(', ') || text.common.none
}

/** Known agents that are not installed, each with its install command. */
function NotInstalled({ agents }: { agents: readonly Agent[] }) {
  if (!agents.length) return null
  return (
    <section className="mt-8">
      <h2 className="text-sm font-semibold">{text.agents.notInstalled}</h2>
      <ul className="mt-2 divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
        {agents.map((agent) => (
          <li key={agent.name} className="px-4 py-2.5">
            <p className="flex flex-wrap items-baseline gap-x-2 text-sm">
              <span className="font-medium">{agent.name}</span>
              <span className="text-xs text-muted">{agent.missing}</span>
            </p>
            <InstallCommand command={agent.install} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function InstallCommand({ command }: { command: string }) {
  const { copied, copy } = useCopy()
  return (
    <div className="mt-1 flex items-center gap-1">
      <code className="min-w-0 flex-1 font-mono text-xs break-words">{command}</code>
      <IconButton label={copied ? text.common.copied : text.agents.copy(command)} onClick={() => copy(command)}>
        {copied ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
      </IconButton>
    </div>
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
