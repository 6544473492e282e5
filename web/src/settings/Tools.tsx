import { ChevronRight, Wrench } from 'lucide-react'
import { useState } from 'react'
import { type Tool, useToolSchema, useTools } from '@/data/settings'
import { Area } from '@/settings/Area'
import { McpServers } from '@/settings/McpServers'
import { Plugins } from '@/settings/Plugins'
import { WebSearch } from '@/settings/WebSearch'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Empty, Failed, Loading } from '@/ui/States'

/** All tools that agents can use. */
export default function Tools() {
  const { data, error, refetch } = useTools()
  return (
    <Area title={text.settings.tools} about={text.toolList.about}>
      <WebSearch />
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : data ? (
        <All tools={data.data} />
      ) : (
        <Loading rows={6} />
      )}
      <McpServers />
      <Plugins />
    </Area>
  )
}

const LOOKS: Record<string, 'good' | 'warn' | 'danger' | 'accent'> = {
  read: 'good',
  write: 'warn',
  execute: 'danger',
  network: 'accent',
}

function All({ tools }: { tools: readonly Tool[] }) {
  if (!tools.length) return <Empty icon={Wrench} title={text.toolList.empty} />
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
      {tools.map((tool) => (
        <li key={tool.name} className="px-4 py-3">
          <div className="flex flex-wrap items-center gap-2">
            <h2 className="font-mono text-sm font-medium">{tool.name}</h2>
            {tool.effects.map((effect) => (
              <Badge key={effect} look={LOOKS[effect] ?? 'plain'}>
                {effect}
              </Badge>
            ))}
            {tool.hidden && <Badge>{text.toolList.optIn}</Badge>}
            {tool.available || <Badge look="danger">{text.toolList.unavailable}</Badge>}
          </div>
          <p className="mt-1 text-sm text-muted">{tool.description}</p>
          {tool.error && <p className="mt-1 text-sm break-words text-danger">{tool.error}</p>}
          <Arguments name={tool.name} />
        </li>
      ))}
    </ul>
  )
}

function Arguments({ name }: { name: string }) {
  const [open, setOpen] = useState(false)
  const { data, error } = useToolSchema(name, open)
  return (
    <details className="mt-1 text-xs" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="flex w-fit cursor-pointer items-center gap-1 py-1 text-muted hover:text-ink max-md:min-h-11">
        <ChevronRight size={13} aria-hidden className="transition-transform in-open:rotate-90" />
        {text.toolList.arguments}
      </summary>
      {error && <p className="text-danger">{error.message}</p>}
      {data && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        <pre tabIndex={0} className="mt-1 max-h-72 overflow-auto rounded-lg bg-sunken p-3 font-mono">
          {JSON.stringify(data.schema, null, 2)}
        </pre>
      )}
    </details>
  )
}
