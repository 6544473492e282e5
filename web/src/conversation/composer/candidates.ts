import { api } from '@/api/client'
import { commands, type Place } from '@/api/commands'
import type { Page } from '@/api/types'
import type { CompletionRequest } from '@/conversation/composer/Completion'

export interface Candidate {
  kind: 'file' | 'folder' | 'command'
  text: string
  about: string
  /** True if the completion is complete, so that a space is added after it. */
  whole: boolean
}

interface FileEntry {
  path: string
  type?: string
}

const MANY = 20

/** Return matching commands, or matching files from the route `files`. */
export async function candidates(
  asked: CompletionRequest,
  files: string,
  place: Place,
  signal: AbortSignal,
): Promise<Candidate[]> {
  if (asked.sign === '/') {
    return (await commands.list(place))
      .filter((command) => command.name.startsWith(asked.word))
      .slice(0, MANY)
      .map(({ name, help, argument }) => ({ kind: 'command', text: name, about: help, whole: Boolean(argument) }))
  }
  const page = await api.get<Page<FileEntry>>(files, { query: { q: asked.word, limit: MANY }, signal })
  return page.data.map(({ path, type }) => ({
    kind: type === 'folder' || path.endsWith('/') ? 'folder' : 'file',
    text: path,
    about: '',
    whole: type !== 'folder' && !path.endsWith('/'),
  }))
}
