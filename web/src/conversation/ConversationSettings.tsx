import { type FormEvent, useState } from 'react'
import { conversations } from '@/api/conversations'
import type { Conversation, Json } from '@/api/types'
import { useAgents, useModels } from '@/data/settings'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, INPUT } from '@/ui/Field'
import { notifyError } from '@/ui/toasts'

interface Props {
  conversation: Conversation
  onClose: () => void
  /** Called after the changes are stored. */
  onSaved: () => void
}

const EFFORTS = ['none', 'low', 'medium', 'high', 'max']
const LISTS = ['tools', 'allowed_uris', 'skills']
const words = text.conversationSettings

/** A dialog with the settings that apply to every prompt of a conversation. An empty field is not set. */
export default function ConversationSettings({ conversation, onClose, onSaved }: Props) {
  const set = conversation.settings as Record<string, Json>
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(Object.entries(set).map(([key, value]) => [key, shown(value)])),
  )
  const [noTools, setNoTools] = useState(Array.isArray(set.tools) && set.tools.length === 0)
  const [noSkills, setNoSkills] = useState(Array.isArray(set.skills) && set.skills.length === 0)
  const [busy, setBusy] = useState(false)
  const agents = useAgents(false, conversation.id)
  const models = useModels()
  const change = (key: string) => (value: string) => setValues({ ...values, [key]: value })

  function save(event: FormEvent) {
    event.preventDefault()
    const wanted = Object.fromEntries(Object.keys(words.fields).map((key) => [key, parsed(key, values[key] ?? '')]))
    if (noTools) wanted.tools = []
    if (noSkills) wanted.skills = []
    const changed = Object.entries(wanted).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(set[key] ?? null),
    )
    if (!changed.length) return onClose()
    setBusy(true)
    conversations
      .change(conversation.id, { settings: Object.fromEntries(changed) })
      .then(onSaved)
      .then(onClose, notifyError)
      .finally(() => setBusy(false))
  }

  return (
    <Dialog title={words.title} onClose={onClose}>
      <form onSubmit={save} className="space-y-4 overflow-y-auto p-5 text-sm">
        <p className="text-muted">{words.about}</p>
        <Choice name="mode" value={values.mode} change={change('mode')} options={Object.keys(text.pickers.modes)} />
        <Choice name="effort" value={values.effort} change={change('effort')} options={EFFORTS} />
        <Choice
          name="detail"
          value={values.detail}
          change={change('detail')}
          options={Object.keys(text.composer.details)}
        />
        <Choice
          name="agent"
          value={values.agent}
          change={change('agent')}
          options={(agents.data?.data ?? []).map((agent) => agent.name)}
        />
        <Choice
          name="model"
          value={values.model}
          change={change('model')}
          options={(models.data?.data ?? []).map((model) => model.id)}
        />
        <Field label={words.fields.tools} about={words.oneEach}>
          {(field) => (
            <textarea
              {...field}
              rows={2}
              disabled={noTools}
              value={noTools ? '' : (values.tools ?? '')}
              onChange={(event) => change('tools')(event.target.value)}
              className={`${INPUT} py-2 font-mono`}
            />
          )}
        </Field>
        <label className="flex min-h-9 cursor-pointer items-center gap-3 max-md:min-h-11">
          <input
            type="checkbox"
            checked={noTools}
            onChange={(event) => setNoTools(event.target.checked)}
            className="size-4 shrink-0 accent-accent"
          />
          {words.noTools}
        </label>
        <Field label={words.fields.allowed_uris} about={words.oneEach}>
          {(field) => (
            <textarea
              {...field}
              rows={2}
              value={values.allowed_uris ?? ''}
              onChange={(event) => change('allowed_uris')(event.target.value)}
              className={`${INPUT} py-2 font-mono`}
            />
          )}
        </Field>
        <Choice name="network" value={values.network} change={change('network')} options={['true', 'false']} />
        <Choice name="web_search" value={values.web_search} change={change('web_search')} options={['true', 'false']} />
        <Field label={words.fields.skills} about={words.oneEach}>
          {(field) => (
            <textarea
              {...field}
              rows={2}
              disabled={noSkills}
              value={noSkills ? '' : (values.skills ?? '')}
              onChange={(event) => change('skills')(event.target.value)}
              className={`${INPUT} py-2 font-mono`}
            />
          )}
        </Field>
        <label className="flex min-h-9 cursor-pointer items-center gap-3 max-md:min-h-11">
          <input
            type="checkbox"
            checked={noSkills}
            onChange={(event) => setNoSkills(event.target.checked)}
            className="size-4 shrink-0 accent-accent"
          />
          {words.noSkills}
        </label>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={busy}>
            {text.common.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface ChoiceProps {
  name: keyof typeof words.fields
  value: string | undefined
  change: (value: string) => void
  options: readonly string[]
}

function Choice({ name, value = '', change, options }: ChoiceProps) {
  const known = value && !options.includes(value) ? [value, ...options] : options
  return (
    <Field label={words.fields[name]}>
      {(field) => (
        <select {...field} className={INPUT} value={value} onChange={(event) => change(event.target.value)}>
          <option value="">{words.notSet}</option>
          {known.map((option) => (
            <option key={option} value={option}>
              {labelOf(name, option)}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

function labelOf(name: string, option: string): string {
  if (name === 'mode') return text.pickers.modes[option as keyof typeof text.pickers.modes]?.label ?? option
  if (name === 'network') return option === 'true' ? words.allowed : words.notAllowed
  if (name === 'web_search') return option === 'true' ? words.on : words.off
  return option
}

function shown(value: Json): string {
  return Array.isArray(value) ? value.join('\n') : String(value ?? '')
}

/** Return the value to store for the text of a field. Null removes the setting. */
function parsed(key: string, value: string): Json {
  if (!value.trim()) return null
  if (key === 'network' || key === 'web_search') return value === 'true'
  if (LISTS.includes(key))
    return value
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  return value
}
