import { api } from '@/api/client'
import type { Page } from '@/api/types'

export interface Command {
  name: string
  help: string
  argument: string
}

/** An action for the page to perform after a command ran. */
export interface Reply {
  kind: 'say' | 'choose' | 'go' | 'compose' | 'copy' | 'answer' | 'leave'
  text: string
  style: string
  title: string
  choices: { value: string; label: string; about: string }[]
  conversation: string | null
  edits: string | null
  resume: string | null
}

/** Overrides for the next prompts. Null means the default of the conversation, agent or configuration. */
export interface Wishes {
  agent?: string | null
  model?: string | null
  mode?: string | null
  effort?: string | null
  tools?: string[] | null
}

interface Done {
  replies: Reply[]
  wishes: Wishes
}

let listed: Promise<readonly Command[]> | null = null

export const commands = {
  /** Return all commands, or none if the request fails. */
  list: (): Promise<readonly Command[]> => {
    listed ??= api.get<Page<Command>>('/commands').then(
      (page) => page.data,
      () => [],
    )
    return listed
  },
  run: (name: string, given: { argument: string; conversation: string | null; wishes: Wishes }) =>
    api.post<Done>(`/commands/${encodeURIComponent(name)}`, given),
}

/** Parse a text as a command: `/name argument`. Return null for any other text. */
export function commandIn(text: string): { name: string; argument: string } | null {
  const found = /^\/([\w-]+)(?:\s+([\s\S]*))?$/.exec(text.trim())
  return found ? { name: found[1] ?? '', argument: found[2]?.trim() ?? '' } : null
}
