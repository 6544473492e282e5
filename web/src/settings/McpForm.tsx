import { X } from 'lucide-react'
import { type FormEvent, useId, useState } from 'react'
import { visible } from '@/conversation/tools/visible'
import {
  commandLine,
  type McpDefinition,
  type McpFields,
  type McpTool,
  useMcpActions,
  useMcpDefinition,
  useMcpDefinitionActions,
} from '@/data/mcp'
import { errorsOf } from '@/settings/FormParts'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'

const words = text.mcp

/** A dialog to add an MCP server, or to change or remove one. Its tools can be listed before it is saved. */
export function McpForm({ name, onClose }: { name: string; onClose: () => void }) {
  const { data, error, isFetchedAfterMount } = useMcpDefinition(name)
  return (
    <Dialog title={name ? words.change(name) : words.add} onClose={onClose} className="md:w-[42rem]">
      {error ? (
        <Failed error={error} className="m-5" />
      ) : !name ? (
        <Fields server={null} etag="" onClose={onClose} />
      ) : data && isFetchedAfterMount ? (
        <Fields server={data.value} etag={data.etag} onClose={onClose} />
      ) : (
        <Loading rows={6} className="m-5" />
      )}
    </Dialog>
  )
}

interface Pair {
  id: number
  key: string
  value: string
  /** True if the configuration contains a value, which is kept unless another one is entered. */
  isStored: boolean
}

const FIELDS = ['name', 'command', 'args', 'env', 'url', 'protocol', 'headers']

function Fields(given: { server: McpDefinition | null; etag: string; onClose: () => void }) {
  const [{ server, etag }] = useState(given) // later fetches must not replace the definition that is being edited
  const { onClose } = given
  const [name, setName] = useState(server?.name ?? '')
  const [isRemote, setIsRemote] = useState(!!server?.url)
  const [command, setCommand] = useState(server?.command ?? '')
  const [lines, setLines] = useState(server?.args.join('\n') ?? '')
  const [env, setEnv] = useState(stored(server?.env))
  const [url, setUrl] = useState(server?.url ?? '')
  const [protocol, setProtocol] = useState(server?.protocol ?? 'http')
  const [headers, setHeaders] = useState(stored(server?.headers))
  const [trust, setTrust] = useState(server?.trust_hints ?? false)
  const [tested, setTested] = useState('')
  const [isAsking, setIsAsking] = useState(false)
  const { test, add, change, remove } = useMcpDefinitionActions()
  const { connect } = useMcpActions(name)

  const isUnchanged = server !== null && lines === server.args.join('\n') // an argument may contain line breaks
  const args = isUnchanged ? server.args : lines.split('\n').filter((line) => line !== '')
  const fields: McpFields = isRemote
    ? { url, protocol: protocol === 'sse' ? 'sse' : 'http', headers: values(headers), trust_hints: trust }
    : { command, args, env: values(env), trust_hints: trust }
  const content = JSON.stringify([name, fields])
  const isTested = test.isSuccess && tested === content
  const { errors, rest } = errorsOf(test.error ?? add.error ?? change.error ?? remove.error, FIELDS)

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    for (const action of [test, add, change, remove]) if (action.isError) action.reset()
    const isTest = (event.nativeEvent as SubmitEvent).submitter?.getAttribute('name') === 'test'
    if (isTest) {
      test.mutate({ name, fields }, { onSuccess: () => setTested(content) })
      return
    }
    const onSuccess = () => {
      if (isTested) connect.mutate() // the entry of the server shows an error
      onClose()
    }
    if (server) change.mutate({ name, fields, etag }, { onSuccess })
    else add.mutate({ name, fields }, { onSuccess })
  }

  return (
    <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
      {!server && (
        <Field label={text.common.name} about={words.nameHelp} error={errors.name}>
          {(field) => (
            <input
              {...field}
              required
              pattern="[A-Za-z0-9_\-]{1,64}"
              autoComplete="off"
              spellCheck={false}
              value={name}
              onChange={(event) => setName(event.target.value)}
              className={INPUT}
            />
          )}
        </Field>
      )}
      <Field label={words.kind}>
        {(field) => (
          <select
            {...field}
            className={INPUT}
            value={isRemote ? 'remote' : 'program'}
            onChange={(event) => setIsRemote(event.target.value === 'remote')}
          >
            <option value="program">{words.kinds.program}</option>
            <option value="remote">{words.kinds.remote}</option>
          </select>
        )}
      </Field>
      {isRemote ? (
        <>
          <Field label={words.address} error={errors.url}>
            {(field) => (
              <input
                {...field}
                type="url"
                required
                spellCheck={false}
                placeholder="https://example.com/mcp"
                value={url}
                onChange={(event) => setUrl(event.target.value)}
                className={INPUT}
              />
            )}
          </Field>
          <Field label={words.protocol} error={errors.protocol}>
            {(field) => (
              <select
                {...field}
                className={INPUT}
                value={protocol}
                onChange={(event) => setProtocol(event.target.value)}
              >
                <option value="http">{words.protocols.http}</option>
                <option value="sse">{words.protocols.sse}</option>
              </select>
            )}
          </Field>
          <Pairs
            label={words.headers}
            words={words.header}
            pairs={headers}
            onChange={setHeaders}
            error={errors.headers}
          />
        </>
      ) : (
        <>
          <Field label={words.program} about={words.programHelp} error={errors.command}>
            {(field) => (
              <input
                {...field}
                required
                autoComplete="off"
                spellCheck={false}
                placeholder="npx"
                value={command}
                onChange={(event) => setCommand(event.target.value)}
                className={`${INPUT} font-mono`}
              />
            )}
          </Field>
          <Field label={words.args} about={words.argsHelp} error={errors.args}>
            {(field) => (
              <textarea
                {...field}
                rows={3}
                spellCheck={false}
                value={lines}
                onChange={(event) => setLines(event.target.value)}
                className={`${INPUT} py-2 font-mono`}
              />
            )}
          </Field>
          <Pairs label={words.env} words={words.variable} pairs={env} onChange={setEnv} error={errors.env} />
        </>
      )}
      <label className="flex min-h-9 cursor-pointer items-center gap-2 text-sm max-md:min-h-11">
        <input
          type="checkbox"
          checked={trust}
          onChange={(event) => setTrust(event.target.checked)}
          className="size-4 accent-accent"
        />
        {words.trust}
      </label>
      <div className="rounded-lg border border-warn/40 bg-warn-soft p-3 text-sm">
        <p>{isRemote ? words.connects : words.starts}</p>
        <code className="mt-1 block font-mono text-xs break-all whitespace-pre-wrap" data-preview>
          {visible(isRemote ? url : command && commandLine([command, ...args])) || '–'}
        </code>
      </div>
      <div role="status">
        {test.isPending && <p className="text-sm text-muted">{words.testing}</p>}
        {isTested && (
          <>
            <p className="text-sm font-medium">
              {words.tested(test.data.tools.length, text.time.seconds(test.data.seconds))}
            </p>
            <Definitions tools={test.data.tools} />
          </>
        )}
      </div>
      {rest && <Failed error={rest} />}
      <div className="flex flex-wrap justify-end gap-2 pt-1">
        {server && (
          <Button
            look="danger"
            className="mr-auto"
            disabled={remove.isPending}
            onClick={() => (isAsking ? remove.mutate(server.name, { onSuccess: onClose }) : setIsAsking(true))}
          >
            {isAsking ? words.removeReally : words.remove}
          </Button>
        )}
        <Button look="quiet" onClick={onClose}>
          {text.common.cancel}
        </Button>
        <Button type="submit" name="test" disabled={test.isPending}>
          {isRemote ? words.test : words.testProgram}
        </Button>
        <Button type="submit" look="primary" disabled={add.isPending || change.isPending}>
          {server ? text.common.save : words.submit}
        </Button>
      </div>
    </form>
  )
}

let last = 0

function stored(names: readonly string[] = []): Pair[] {
  return names.map((key) => ({ id: ++last, key, value: '', isStored: true }))
}

/** Return the pairs as they are sent: null keeps the stored value. */
function values(pairs: readonly Pair[]): Record<string, string | null> {
  return Object.fromEntries(
    pairs.filter(({ key }) => key).map(({ key, value, isStored }) => [key, isStored && !value ? null : value]),
  )
}

interface PairsProps {
  label: string
  words: { name: string; value: string; add: string; remove: (name: string) => string }
  pairs: readonly Pair[]
  onChange: (pairs: Pair[]) => void
  error?: string
}

/** Names with values that are never shown, such as environment variables. */
function Pairs({ label, words: labels, pairs, onChange, error }: PairsProps) {
  const id = useId()
  const put = (at: number, changed: Partial<Pair>) =>
    onChange(pairs.map((pair, index) => (index === at ? { ...pair, ...changed } : pair)))
  return (
    <fieldset aria-describedby={error ? id : undefined}>
      <legend className="mb-1.5 text-sm font-medium">{label}</legend>
      <ul className="space-y-2">
        {pairs.map((pair, at) => (
          <li key={pair.id} className="flex gap-2">
            <input
              aria-label={labels.name}
              aria-invalid={error ? true : undefined}
              required
              readOnly={pair.isStored}
              autoComplete="off"
              spellCheck={false}
              value={pair.key}
              onChange={(event) => put(at, { key: event.target.value })}
              className={`${INPUT} font-mono read-only:bg-sunken`}
            />
            <input
              aria-label={labels.value}
              type="password"
              autoComplete="new-password"
              spellCheck={false}
              placeholder={pair.isStored ? words.kept : ''}
              value={pair.value}
              onChange={(event) => put(at, { value: event.target.value })}
              className={INPUT}
            />
            <IconButton
              label={labels.remove(pair.key)}
              onClick={() => onChange(pairs.filter((_, index) => index !== at))}
              className="self-center"
            >
              <X size={16} aria-hidden />
            </IconButton>
          </li>
        ))}
      </ul>
      <Button
        className={pairs.length ? 'mt-2' : ''}
        onClick={() => onChange([...pairs, { id: ++last, key: '', value: '', isStored: false }])}
      >
        {labels.add}
      </Button>
      {error ? (
        <p id={id} className="mt-1.5 text-xs text-danger">
          {error}
        </p>
      ) : (
        <p className="mt-1.5 text-xs text-muted">{words.valuesHelp}</p>
      )}
    </fieldset>
  )
}

/** The names and descriptions of tools. */
export function Definitions({ tools }: { tools: readonly McpTool[] }) {
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
