import { useState } from 'react'
import type { Conversation } from '@/api/types'
import type { Choice } from '@/conversation/composer/Pickers'

const KEY = 'moot.choice'

/** Return agent, model, mode and project for the next prompt: the choice made here, else the conversation's last run, else the last choice. */
export function useChoice(conversation: Conversation | null): [Choice, (change: Partial<Choice>) => void] {
  const [chosen, setChosen] = useState<Partial<Choice>>({})
  const before = conversation
    ? {
        agent: conversation.agent,
        model: conversation.origin && !('events' in conversation.origin) ? '' : conversation.model, // a source's need not be here
        mode: modeOf(conversation),
        project: conversation.project,
      }
    : { agent: 'default', model: '', mode: 'ask', project: '', ...stored() }
  const choice = { ...before, ...chosen }
  function choose(change: Partial<Choice>) {
    setChosen({ ...chosen, ...change })
    keep({ ...choice, ...change })
  }
  return [choice, choose]
}

function modeOf(conversation: Conversation): string {
  const mode = conversation.settings?.mode
  return typeof mode === 'string' ? mode : 'ask'
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
