import { api } from '@/api/client'
import type { Page } from '@/api/types'
import type { Asked } from '@/conversation/composer/Completion'

export interface Candidate {
  kind: 'file' | 'folder' | 'command'
  text: string
  about: string
  /** Nothing more is to be completed behind it. */
  whole: boolean
}

interface FileEntry {
  path: string
  type?: string
}

interface Command {
  name: string
  description?: string
  help?: string
}

const MANY = 12
let commands: Promise<Command[]> | null = null

/** What completes a word: files of the conversation's project, or commands. */
export async function candidates(asked: Asked, project: string, signal: AbortSignal): Promise<Candidate[]> {
  if (asked.sign === '/') {
    commands ??= api.get<Page<Command>>('/commands', { query: { limit: 200 } }).then(
      (page) => page.data,
      () => [],
    )
    return (await commands)
      .filter((command) => command.name.startsWith(asked.word))
      .slice(0, MANY)
      .map((command) => ({
        kind: 'command',
        text: command.name,
        about: command.description ?? command.help ?? '',
        whole: true,
      }))
  }
  const page = await api.get<Page<FileEntry>>(`/projects/${encodeURIComponent(project || 'default')}/files`, {
    query: { q: asked.word, limit: MANY },
    signal,
  })
  return page.data.map(({ path, type }) => ({
    kind: type === 'folder' || path.endsWith('/') ? 'folder' : 'file',
    text: path,
    about: '',
    whole: type !== 'folder' && !path.endsWith('/'),
  }))
}
