import type { QueryClient } from '@tanstack/react-query'
import { api, Problem } from '@/api/client'
import { commands, type Place } from '@/api/commands'
import type { Page } from '@/api/types'
import type { CompletionRequest } from '@/conversation/composer/Completion'
import { mcpQuery, referenceTo, resourcesQuery } from '@/data/mcp'
import { configQuery, toolsQuery } from '@/data/settings'

export interface Candidate {
  kind: 'file' | 'folder' | 'command' | 'macro' | 'tool' | 'resource'
  text: string
  /** The text to insert, if it must be quoted in another way than the name of a file. */
  quoted?: string
  about: string
  /** True if the completion is complete, so that a space is added after it. */
  whole: boolean
}

interface FileEntry {
  path: string
  type?: string
}

const MANY = 20
const ABOUT = 100
const FRESH = 30_000

/** Return matching commands; or macros after `{`, tools after `[`, resources after `SERVER:`, or else files from the route `files`. */
export async function candidates(
  asked: CompletionRequest,
  files: string,
  place: Place,
  client: QueryClient,
  signal: AbortSignal,
): Promise<Candidate[]> {
  if (asked.sign === '/') {
    return (await commands.list(place))
      .filter((command) => command.name.startsWith(asked.word))
      .slice(0, MANY)
      .map(({ name, help, argument }) => ({ kind: 'command', text: name, about: help, whole: Boolean(argument) }))
  }
  const named = await namedCandidates(asked.word, client)
  if (named.length) return named.slice(0, MANY)
  const page = await api.get<Page<FileEntry>>(files, { query: { q: asked.word, limit: MANY }, signal })
  return page.data.map(({ path, type }) => ({
    kind: type === 'folder' || path.endsWith('/') ? 'folder' : 'file',
    text: path,
    about: '',
    whole: type !== 'folder' && !path.endsWith('/'),
  }))
}

/** Return the macros, tools or resources that a word starts, except one that is already typed and needs more. */
export async function namedCandidates(word: string, client: QueryClient): Promise<Candidate[]> {
  try {
    return (await offered(word, client)).filter(({ text, whole }) => whole || text !== word)
  } catch (error) {
    if (error instanceof Problem && error.status === 403) return [] // for the user `local` only
    throw error
  }
}

async function offered(word: string, client: QueryClient): Promise<Candidate[]> {
  if (word.startsWith('{')) return (await macros(client)).filter(({ text }) => text.startsWith(word))
  if (word.startsWith('[')) return (await tools(client)).filter(({ text }) => text.startsWith(word))
  const [, name, typed] = /^([^:]+):(.*)$/.exec(word) ?? []
  if (name === undefined || typed === undefined) return []
  const { data } = await client.fetchQuery({ ...mcpQuery, staleTime: FRESH })
  return data.some((server) => server.name === name && server.enabled) ? resources(name, typed, client) : []
}

async function macros(client: QueryClient): Promise<Candidate[]> {
  const { config } = await client.fetchQuery({ ...configQuery, staleTime: FRESH })
  return Object.entries(config.macros ?? {}).map(([name, value]) => ({
    kind: 'macro',
    text: `{${name}}`,
    about: String(value).slice(0, ABOUT),
    whole: true,
  }))
}

async function tools(client: QueryClient): Promise<Candidate[]> {
  const { data } = await client.fetchQuery(toolsQuery)
  return data
    .filter((tool) => tool.available && !tool.hidden)
    .map(({ name, description }) => ({ kind: 'tool', text: `[${name}{`, about: description, whole: false }))
}

async function resources(server: string, typed: string, client: QueryClient): Promise<Candidate[]> {
  const { data } = await client.fetchQuery({ ...resourcesQuery(server), staleTime: FRESH })
  const searched = typed.toLowerCase()
  return data.flatMap(({ uri, name, is_template }) => {
    const start = is_template ? (uri.split('{')[0] ?? '') : uri // the rest of a template is for the user to type
    const reference = referenceTo(server, start)
    if (!reference || !`${uri} ${name}`.toLowerCase().includes(searched)) return []
    return [
      { kind: 'resource', text: `${server}:${start}`, quoted: reference.slice(1), about: name, whole: !is_template },
    ]
  })
}
