import { ChevronRight } from 'lucide-react'
import { useEffect, useId, useRef, useState } from 'react'
import { type McpServer, useMcpActions, useMcpServers } from '@/data/mcp'
import { Definitions, McpForm } from '@/settings/McpForm'
import { McpResources } from '@/settings/McpResources'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Failed, Loading } from '@/ui/States'

/** The configured MCP servers with their state, buttons to enable or disable them, and tools to accept. */
export function McpServers() {
  const { data, error, refetch } = useMcpServers()
  const heading = useId()
  const [edited, setEdited] = useState<string | null>(null) // the name of the server; empty for a new one
  return (
    <section aria-labelledby={heading} className="mt-8">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 id={heading} className="font-medium">
          {text.mcp.title}
        </h2>
        {data && <Button onClick={() => setEdited('')}>{text.mcp.add}</Button>}
      </div>
      <p className="mt-1 mb-3 text-sm text-muted">{text.mcp.about}</p>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={2} />
      ) : data.data.length ? (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
          {data.data.map((server) => (
            <Entry key={server.name} server={server} edit={() => setEdited(server.name)} />
          ))}
        </ul>
      ) : (
        <p className="rounded-xl border border-line px-4 py-3 text-sm text-muted">{text.mcp.empty}</p>
      )}
      {edited !== null && <McpForm name={edited} onClose={() => setEdited(null)} />}
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

function Entry({ server, edit }: { server: McpServer; edit: () => void }) {
  const { change, connect, accept, signIn, signOut } = useMcpActions(server.name)
  const [browsing, setBrowsing] = useState(false)
  const changed = server.tools.filter((tool) => tool.is_changed)
  const usable = server.tools.filter((tool) => !tool.is_changed)
  const failure = connect.error ?? change.error ?? accept.error ?? signIn.error ?? signOut.error
  const login = server.login.state
  useSignedIn(login, connect.mutate)
  return (
    <li className="px-4 py-3" data-mcp={server.name}>
      <div className="flex flex-wrap items-center gap-2">
        <h3 className="font-mono text-sm font-medium">{server.name}</h3>
        <Badge look={LOOKS[server.status]}>{text.mcp.states[server.status]}</Badge>
        <span className="text-xs text-muted">{text.mcp.count(usable.length)}</span>
        <span className="ml-auto flex flex-wrap justify-end gap-2">
          {server.enabled && login === 'needed' && (
            <Button
              look="primary"
              aria-label={text.mcp.signInAt(server.name)}
              disabled={signIn.isPending}
              onClick={() => signIn.mutate(undefined, { onSuccess: ({ login }) => openPage(login.address) })}
            >
              {text.mcp.signIn}
            </Button>
          )}
          {login === 'signed in' && (
            <Button
              aria-label={text.mcp.signOutOf(server.name)}
              disabled={signOut.isPending}
              onClick={() => signOut.mutate()}
            >
              {text.mcp.signOut}
            </Button>
          )}
          {server.enabled && (
            <Button aria-label={text.mcp.resourcesOf(server.name)} onClick={() => setBrowsing(true)}>
              {text.mcp.resources}
            </Button>
          )}
          {server.enabled && (
            <Button
              aria-label={text.mcp.connectTo(server.name)}
              disabled={connect.isPending}
              onClick={() => connect.mutate()}
            >
              {connect.isPending ? text.mcp.connecting : text.mcp.connect}
            </Button>
          )}
          {server.is_saved && (
            <Button aria-label={text.mcp.editServer(server.name)} onClick={edit}>
              {text.common.edit}
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
      {login === 'pending' ? (
        <Waiting server={server} isCancelling={signOut.isPending} cancel={() => signOut.mutate()} />
      ) : (
        (failure || server.login.error || server.error) && (
          <p role="alert" className="mt-1 text-sm break-words text-danger">
            {failure?.message ?? (server.login.error || server.error)}
          </p>
        )
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
      {browsing && <McpResources server={server.name} onClose={() => setBrowsing(false)} />}
    </li>
  )
}

/** Call `then` once a pending login has succeeded. */
function useSignedIn(state: McpServer['login']['state'], then: () => void) {
  const before = useRef(state)
  useEffect(() => {
    if (before.current === 'pending' && state === 'signed in') then()
    before.current = state
  }, [state, then])
}

function openPage(address: string) {
  window.open(address, '_blank', 'noopener,noreferrer')
}

const LOCAL = ['localhost', '127.0.0.1', '[::1]']

/** A login that waits for the browser. Its link is for browsers that have blocked the new tab. */
function Waiting(props: { server: McpServer; isCancelling: boolean; cancel: () => void }) {
  const { name, login } = props.server
  return (
    <div className="mt-2 rounded-lg border border-line bg-sunken p-3 text-sm">
      <p role="status">{text.mcp.waiting(name)}</p>
      {!LOCAL.includes(location.hostname) && (
        <p className="mt-1 text-warn">
          {text.mcp.elsewhere} <code className="font-mono text-ink">{text.mcp.loginCommand(name)}</code>
        </p>
      )}
      <div className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-2">
        <a
          href={login.address}
          target="_blank"
          rel="noopener noreferrer"
          className="inline-flex items-center text-accent underline max-md:min-h-11"
        >
          {text.mcp.openLogin}
        </a>
        <Button aria-label={text.mcp.cancelLogin(name)} disabled={props.isCancelling} onClick={props.cancel}>
          {text.common.cancel}
        </Button>
      </div>
    </div>
  )
}
