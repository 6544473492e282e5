import { SquareSlash } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useSession } from '@/app/session'
import {
  type Command,
  type CommandFields,
  type CommandText,
  useCommandActions,
  useCommandList,
  useCommandText,
} from '@/data/commands'
import { useProjects } from '@/data/projects'
import { Area } from '@/settings/Area'
import { Deletion, errorsOf, Text } from '@/settings/FormParts'
import { text } from '@/text'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'

const words = text.slashCommands

/** Custom slash commands: those in moot's home can be created, changed and deleted, others are shown with their file. */
export default function Commands() {
  const session = useSession()
  const projects = useProjects().filter(({ root_path }) => root_path !== null)
  const [project, setProject] = useState('')
  const { data, error, refetch } = useCommandList(project)
  const [shown, setShown] = useState<string | null>(null) // the name of a command; empty for a new one
  const [deleting, setDeleting] = useState<string | null>(null)
  const mayChange = session.data?.scopes.includes('machine') ?? false
  const custom = data?.data.filter(({ origin }) => origin.startsWith('/')) ?? []
  const problems = Object.entries(data?.problems ?? {})
  return (
    <Area
      title={text.settings.commands}
      about={words.about}
      actions={
        <>
          {projects.length > 0 && (
            <select
              aria-label={words.project}
              value={project}
              onChange={(event) => setProject(event.target.value)}
              className={`${INPUT} max-w-56`}
            >
              <option value="">{words.noProject}</option>
              {projects.map(({ id, name }) => (
                <option key={id} value={id}>
                  {words.withProject(name)}
                </option>
              ))}
            </select>
          )}
          {mayChange && (
            <Button look="primary" onClick={() => setShown('')}>
              {words.new}
            </Button>
          )}
        </>
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={3} />
      ) : (
        <>
          {problems.length > 0 && (
            <ul className="mb-4 space-y-1 rounded-xl border border-warn/40 bg-warn-soft p-4 text-sm">
              {problems.map(([name, problem]) => (
                <li key={name} className="break-words">
                  <span className="font-mono font-medium">/{name}</span>: {problem}
                </li>
              ))}
            </ul>
          )}
          {custom.length ? (
            <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised">
              {custom.map((command) => (
                <Entry
                  key={command.name}
                  command={command}
                  show={mayChange ? setShown : null}
                  remove={mayChange ? setDeleting : null}
                />
              ))}
            </ul>
          ) : (
            <Empty icon={SquareSlash} title={words.empty}>
              {words.emptyAbout}
            </Empty>
          )}
        </>
      )}
      {shown !== null && <CommandForm name={shown} project={project} onClose={() => setShown(null)} />}
      {deleting !== null && <CommandDeletion name={deleting} onClose={() => setDeleting(null)} />}
    </Area>
  )
}

interface EntryProps {
  command: Command
  /** Null if the caller may not see and change the text. */
  show: ((name: string) => void) | null
  remove: ((name: string) => void) | null
}

function Entry({ command, show, remove }: EntryProps) {
  const { name } = command
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 py-3" data-command={name}>
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex flex-wrap items-center gap-2">
          <span className="font-mono text-sm font-medium break-all">
            /{name} {command.argument}
          </span>
          {!command.is_own && <Badge>{words.readOnly}</Badge>}
        </p>
        <p className="mt-1 text-sm break-words text-muted">{command.help}</p>
        <p className="mt-1 font-mono text-xs break-all text-muted">{command.origin}</p>
      </div>
      {show && (
        <Button aria-label={command.is_own ? words.edit(name) : words.show(name)} onClick={() => show(name)}>
          {command.is_own ? text.common.edit : words.open}
        </Button>
      )}
      {remove && command.is_own && (
        <Button look="danger" aria-label={words.delete(name)} onClick={() => remove(name)}>
          {text.common.delete}
        </Button>
      )}
    </li>
  )
}

function CommandDeletion({ name, onClose }: { name: string; onClose: () => void }) {
  const { remove } = useCommandActions()
  return (
    <Deletion
      title={words.deleteTitle(name)}
      about={words.deleteAbout}
      submit={words.deleteSubmit}
      isPending={remove.isPending}
      error={remove.error}
      remove={() => remove.mutate(name, { onSuccess: onClose })}
      onClose={onClose}
    />
  )
}

/** A dialog to create or change a command, or to read one that is defined elsewhere. */
function CommandForm({ name, project, onClose }: { name: string; project: string; onClose: () => void }) {
  const { data, error, isFetchedAfterMount } = useCommandText(name, project)
  return (
    <Dialog title={name ? `/${name}` : words.new} onClose={onClose}>
      {error ? (
        <Failed error={error} className="m-5" />
      ) : !name ? (
        <Fields command={null} etag="" onClose={onClose} />
      ) : !data || !isFetchedAfterMount ? (
        <Loading rows={6} className="m-5" />
      ) : data.value.is_own ? (
        <Fields command={data.value} etag={data.etag} onClose={onClose} />
      ) : (
        <div className="space-y-3 overflow-y-auto p-5 text-sm">
          <p>{words.elsewhere}</p>
          <p className="font-mono text-xs break-all text-muted">{data.value.origin}</p>
          <pre
            // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
            tabIndex={0}
            className="max-h-96 overflow-auto rounded-lg bg-sunken p-3 font-mono text-xs whitespace-pre-wrap"
          >
            {data.value.prompt}
          </pre>
        </div>
      )}
    </Dialog>
  )
}

const KEYS = ['name', 'description', 'argument', 'agent', 'model', 'prompt'] as const

function Fields(given: { command: CommandText | null; etag: string; onClose: () => void }) {
  const [{ command, etag }] = useState(given) // later fetches must not replace the command with which the edited fields are compared
  const { onClose } = given
  const { create, change } = useCommandActions()
  const { errors, rest } = errorsOf(create.error ?? change.error, KEYS)

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const entered = new FormData(event.currentTarget)
    const value = (name: string) =>
      String(entered.get(name) ?? '')
        .replaceAll('\r\n', '\n')
        .trim()
    const fields: CommandFields = Object.fromEntries(
      KEYS.filter((key) => key !== 'name' && value(key) !== (command?.[key].trim() ?? '')).map((key) => [
        key,
        value(key),
      ]),
    )
    if (command) change.mutate({ name: command.name, fields, etag }, { onSuccess: onClose })
    else create.mutate({ name: value('name'), ...fields }, { onSuccess: onClose })
  }

  return (
    <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
      {!command && <Text name="name" label={text.common.name} about={words.nameHelp} error={errors.name} required />}
      <Text name="description" label={words.description} value={command?.description} error={errors.description} />
      <Text
        name="argument"
        label={words.argument}
        about={words.argumentHelp}
        value={command?.argument}
        error={errors.argument}
      />
      <Text
        name="prompt"
        label={words.prompt}
        about={words.promptHelp}
        value={command?.prompt}
        error={errors.prompt}
        rows={8}
      />
      <div className="grid gap-4 md:grid-cols-2">
        <Text name="agent" label={words.agent} about={words.optional} value={command?.agent} error={errors.agent} />
        <Text name="model" label={words.model} about={words.optional} value={command?.model} error={errors.model} />
      </div>
      {rest && <Failed error={rest} />}
      <div className="flex justify-end gap-2 pt-1">
        <Button look="quiet" onClick={onClose}>
          {text.common.cancel}
        </Button>
        <Button type="submit" look="primary" disabled={create.isPending || change.isPending}>
          {command ? text.common.save : words.create}
        </Button>
      </div>
    </form>
  )
}
