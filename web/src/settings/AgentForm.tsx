import { type FormEvent, useState } from 'react'
import { type Agent, type AgentFields, useAgentActions, useAgentFile } from '@/data/settings'
import { Deletion, errorsOf, Text } from '@/settings/FormParts'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'

/** The purpose of the form: create an agent, copy one, or change one. */
export type Shown = { kind: 'new' } | { kind: 'copy' | 'edit'; agent: Agent }

const words = text.agents

/** A dialog to create, copy or change an agent that is a file in moot's home folder. */
export function AgentForm({ shown, onClose }: { shown: Shown; onClose: () => void }) {
  const { data, error, isFetchedAfterMount } = useAgentFile(shown.kind === 'edit' ? shown.agent.name : '')
  return (
    <Dialog title={titleOf(shown)} onClose={onClose}>
      {error ? (
        <Failed error={error} className="m-5" />
      ) : shown.kind !== 'edit' ? (
        <Fields shown={shown} etag="" onClose={onClose} />
      ) : data && isFetchedAfterMount ? (
        <Fields shown={{ ...shown, agent: data.value }} etag={data.etag} onClose={onClose} />
      ) : (
        <Loading rows={6} className="m-5" />
      )}
    </Dialog>
  )
}

function titleOf(shown: Shown): string {
  if (shown.kind === 'new') return words.new
  return shown.kind === 'copy' ? words.copyTitle(shown.agent.name) : words.editTitle(shown.agent.name)
}

function Fields(given: { shown: Shown; etag: string; onClose: () => void }) {
  const [{ shown, etag }] = useState(given) // later fetches must not replace the agent with which the edited fields are compared
  const { onClose } = given
  const { create, change } = useAgentActions()
  const agent = shown.kind === 'new' ? null : shown.agent
  const [noTools, setNoTools] = useState(agent?.tools?.length === 0)
  const failure = create.error ?? change.error
  const { errors, rest } = errorsOf(failure, KEYS)

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const entered = new FormData(event.currentTarget)
    const value = (name: string) =>
      String(entered.get(name) ?? '')
        .replaceAll('\r\n', '\n')
        .trim()
    const number = (name: string) => (value(name) === '' ? null : Number(value(name)))
    const fields: AgentFields = {
      description: value('description') || null,
      model: value('model') || null,
      instructions: value('instructions') || null,
      rules: value('rules') || null,
      tools: noTools ? [] : listed(value('tools')),
      role: value('role') === 'read' ? 'read' : null,
      temperature: number('temperature'),
      max_steps: number('max_steps'),
      agents: listed(value('agents')),
    }
    const changed = changes(agent, fields)
    if (shown.kind === 'edit') change.mutate({ name: shown.agent.name, fields: changed, etag }, { onSuccess: onClose })
    else {
      const copied = shown.kind === 'copy' ? { copy_of: shown.agent.name } : {}
      create.mutate({ ...changed, ...copied, name: value('name') }, { onSuccess: onClose })
    }
  }

  return (
    <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
      {shown.kind !== 'edit' && (
        <Text name="name" label={text.common.name} about={words.nameHelp} error={errors.name} required />
      )}
      <Text name="description" label={words.description} value={agent?.description} error={errors.description} />
      <Text name="model" label={words.model} about={words.modelHelp} value={agent?.model} error={errors.model} />
      <Text
        name="instructions"
        label={words.instructions}
        value={agent?.instructions}
        error={errors.instructions}
        rows={8}
      />
      <Text name="rules" label={words.rules} value={agent?.rules} error={errors.rules} rows={2} />
      {!noTools && (
        <Text
          name="tools"
          label={words.tools}
          about={words.toolsHelp}
          value={agent?.tools?.join(', ')}
          error={errors.tools}
        />
      )}
      <label className="flex min-h-9 items-center gap-2 text-sm max-md:min-h-11">
        <input type="checkbox" checked={noTools} onChange={(event) => setNoTools(event.target.checked)} />
        {words.noTools}
      </label>
      <Field label={words.role} error={errors.role}>
        {(field) => (
          <select {...field} name="role" defaultValue={agent?.role ?? 'write'} className={INPUT}>
            {Object.entries(words.roles).map(([role, label]) => (
              <option key={role} value={role}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <div className="grid grid-cols-2 gap-4">
        <Text
          name="temperature"
          label={words.temperature}
          value={agent?.temperature}
          error={errors.temperature}
          number
        />
        <Text name="max_steps" label={words.maxSteps} value={agent?.max_steps} error={errors.max_steps} number />
      </div>
      <Text
        name="agents"
        label={words.subAgents}
        about={words.subAgentsHelp}
        value={agent?.agents.join(', ')}
        error={errors.agents}
      />
      {rest && <Failed error={rest} />}
      <div className="flex justify-end gap-2 pt-1">
        <Button look="quiet" onClick={onClose}>
          {text.common.cancel}
        </Button>
        <Button type="submit" look="primary" disabled={create.isPending || change.isPending}>
          {shown.kind === 'edit' ? text.common.save : words.create}
        </Button>
      </div>
    </form>
  )
}

/** Ask for confirmation before an agent is deleted. */
export function AgentDeletion({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const { remove } = useAgentActions()
  return (
    <Deletion
      title={words.deleteTitle(agent.name)}
      about={words.deleteAbout}
      submit={words.deleteSubmit}
      isPending={remove.isPending}
      error={remove.error}
      remove={() => remove.mutate(agent.name, { onSuccess: onClose })}
      onClose={onClose}
    />
  )
}

const KEYS = [
  'name',
  'description',
  'model',
  'instructions',
  'rules',
  'tools',
  'role',
  'temperature',
  'max_steps',
  'agents',
]

function listed(value: string): string[] | null {
  const names = value.split(',').map((name) => name.trim())
  return value ? names.filter(Boolean) : null
}

/** Return the fields that differ from the agent's, or all set fields without an agent. Unchanged values must not be written to its file. */
function changes(agent: Agent | null, fields: AgentFields): AgentFields {
  const before: AgentFields = agent ? fieldsOf(agent) : {}
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof AgentFields] ?? null),
    ),
  )
}

/** Return an agent's fields as the form sends them. */
function fieldsOf(agent: Agent): AgentFields {
  return {
    description: agent.description.trim() || null,
    model: agent.model.trim() || null,
    instructions: agent.instructions.trim() || null,
    rules: agent.rules.trim() || null,
    tools: agent.tools ? [...agent.tools] : null,
    role: agent.role === 'read' ? 'read' : null,
    temperature: agent.temperature,
    max_steps: agent.max_steps,
    agents: agent.agents.length ? [...agent.agents] : null,
  }
}
