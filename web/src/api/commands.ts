import { api } from '@/api/client'
import type { Page } from '@/api/types'

export interface Command {
  name: string
  help: string
  argument: string
  category: string
  aliases: string[]
}

interface Listed extends Page<Command> {
  /** Name of a command → why it can't be used. */
  problems: Record<string, string>
}

/** An action for the page to perform after a command ran. */
export interface Reply {
  kind: 'say' | 'choose' | 'go' | 'compose' | 'copy' | 'answer' | 'run' | 'save' | 'leave'
  text: string
  style: string
  title: string
  choices: { value: string; label: string; about: string }[]
  /** For `choose`: the command that gets the value; empty = the same one. */
  command: string
  conversation: string | null
  edits: string | null
  resume: string | null
  run: string | null
  format: string
}

/** Overrides for the next prompts. Null means the default of the conversation, agent or configuration. */
export interface Wishes {
  agent?: string | null
  model?: string | null
  mode?: string | null
  effort?: string | null
  tools?: string[] | null
  web_search?: boolean | null
}

interface Done {
  replies: Reply[]
  wishes: Wishes
}

/** Where a command runs: a stored conversation, or a new one in a project. */
export interface Place {
  conversation: string | null
  project: string
}

const FRESH = 5_000
const listed = new Map<string, { at: number; found: Promise<Listed> }>()
const NONE: Listed = { data: [], next_cursor: null, problems: {} }

function listing({ conversation, project }: Place): Promise<Listed> {
  const key = conversation ?? `project ${project}`
  const known = listed.get(key)
  if (known && Date.now() - known.at < FRESH) return known.found
  const query = conversation ? { conversation } : { project }
  const found = api.get<Listed>('/commands', { query }).catch(() => NONE)
  listed.set(key, { at: Date.now(), found })
  return found
}

export const commands = {
  /** Return the commands that can be used in a place, or none if the request fails. Files may change, so the list is kept briefly. */
  list: async (place: Place): Promise<readonly Command[]> => (await listing(place)).data,
  /** Return whether a name is a command or its alias, also if the command can't be used. */
  knows: async (place: Place, name: string): Promise<boolean> => {
    const { data, problems } = await listing(place)
    return name in problems || data.some((command) => command.name === name || command.aliases.includes(name))
  },
  run: (name: string, given: Place & { argument: string; file: string; wishes: Wishes }) =>
    api.post<Done>(`/commands/${encodeURIComponent(name)}`, given),
}

/** Parse a text as a command: `/name argument`. Return null for any other text. */
export function commandIn(text: string): { name: string; argument: string } | null {
  const found = /^\/([\w:-]+)(?:\s+([\s\S]*))?$/.exec(text.trim())
  return found ? { name: found[1] ?? '', argument: found[2]?.trim() ?? '' } : null
}
