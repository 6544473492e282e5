import { useEffect, useState } from 'react'
import { conversations } from '@/api/conversations'
import type { Conversation } from '@/api/types'
import type { Choice } from '@/conversation/composer/Pickers'
import { notifyError } from '@/ui/toasts'

const KEY = 'moot.choice'

/**
 * Return the agent, model, mode and project for the next prompt: the choice made here, or that of the conversation's last run, or the
 * user's last choice. An empty mode means the mode of the conversation or the configuration. A chosen mode or web search is stored in the
 * conversation, then `onStored` is called. The last returned value is sent with a prompt. In an existing conversation, it only contains choices made here,
 * because sending a value stores it as a setting.
 */
export function useChoice(
  conversation: Conversation | null,
  onStored: () => void,
): [Choice, (change: Partial<Choice>) => void, Partial<Choice>] {
  const [chosen, setChosen] = useState<Partial<Choice>>({})
  const before = conversation
    ? {
        agent: conversation.agent,
        // an imported conversation's model may not exist here
        model: conversation.origin && !('events' in conversation.origin) ? '' : conversation.model,
        mode: '',
        project: conversation.project,
        temporary: conversation.expires_at !== null,
        web: null,
      }
    : { agent: 'default', model: '', mode: '', project: '', temporary: false, web: null, ...stored() }
  // an agent chosen for an existing conversation answers with its own model
  const choice = { ...before, ...(conversation && chosen.agent !== undefined && { model: '' }), ...chosen }
  const id = conversation?.id
  const { mode, web } = chosen
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a chosen mode or a new conversation is stored
  useEffect(() => {
    if (!id || mode === undefined) return
    conversations
      .change(id, { settings: { mode: mode || null } })
      .then(onStored, notifyError)
      .finally(() => setChosen(({ mode: now, ...kept }) => (now === mode ? kept : { ...kept, mode: now })))
  }, [id, mode])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a chosen search or a new conversation is stored
  useEffect(() => {
    if (!id || web === undefined) return
    conversations
      .change(id, { settings: { web_search: web } })
      .then(onStored, notifyError)
      .finally(() => setChosen(({ web: now, ...kept }) => (now === web ? kept : { ...kept, web: now })))
  }, [id, web])
  function choose(change: Partial<Choice>) {
    setChosen({ ...chosen, ...change })
    keep({ ...choice, ...change })
    if (id && change.model === '') conversations.change(id, { settings: { model: null } }).then(onStored, notifyError)
  }
  return [choice, choose, conversation ? chosen : choice]
}

function stored(): Partial<Choice> {
  try {
    const { agent, model } = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Choice>
    return { ...(agent && { agent }), ...(model && { model }) } // the mode is never remembered across conversations
  } catch {
    return {}
  }
}

function keep(choice: Choice): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(choice))
  } catch {
    // storage is unavailable
  }
}
