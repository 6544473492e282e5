import { api } from '@/api/client'
import type { Page } from '@/api/types'

export interface Command {
  name: string
  help: string
  argument: string
}

/** What the page is to do when a command was run. */
export interface Reply {
  kind: 'say' | 'choose' | 'go' | 'compose' | 'answer' | 'leave'
  text: string
  style: string
  title: string
  choices: { value: string; label: string; about: string }[]
  conversation: string | null
  edits: string | null
  resume: string | null
}

/** What the next prompts are run with; null: as the conversation, the agent or the configuration has it. */
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
  /** Every command; none where the server can't say. */
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

/** The command that a text is, if it is one: a name behind a `/` and what follows it. */
export function commandIn(text: string): { name: string; argument: string } | null {
  const found = /^\/([\w-]+)(?:\s+([\s\S]*))?$/.exec(text.trim())
  return found ? { name: found[1] ?? '', argument: found[2]?.trim() ?? '' } : null
}
