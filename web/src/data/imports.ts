import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'
import { notify } from '@/ui/toasts'

/** Conversations of one program found on the server's machine. */
export interface Found {
  format: string
  path: string
  sources: number
  bytes: number
  conversations: number
}

export interface ImportedConversation {
  outcome: string
  format: string
  path: string
  title: string
  conversation: string | null
  messages: number
  added: number
  grown: number
  fidelity: Record<'kept' | 'approximated' | 'lost', Record<string, number>>
  problems: number
  notes: string[]
}

export interface Import {
  id: string
  state: 'queued' | 'running' | 'finished' | 'failed'
  error: string
  asked_at: number
  ended_at: number | null
  sources: number
  sources_done: number
  unchanged: number
  bytes: number
  bytes_done: number
  messages: number
  added: number
  grown: number
  problems: number
  conversations: Record<string, number>
  brought: ImportedConversation[]
  failed: { path: string; problem: string }[]
  unclaimed: { count: number; some: string[] }
}

/** An agent's folder that moot can't read. */
export type Unread = components['schemas']['UnreadOut']

/** The state of automatic import. */
export interface Watch {
  wanted: boolean
  since: number | null
  sources: number
  messages: number
  last_at: number | null
  problem: string
}

export function useFound() {
  return useQuery({
    queryKey: ['imports', 'found'],
    queryFn: ({ signal }) => api.get<Page<Found>>('/imports/found', { signal }),
  })
}

export function useUnread() {
  return useQuery({
    queryKey: ['imports', 'unread'],
    queryFn: ({ signal }) => api.get<Page<Unread>>('/imports/unread', { signal }),
  })
}

export function useWatch() {
  return useQuery({
    queryKey: ['imports', 'watch'],
    queryFn: ({ signal }) => api.get<Watch>('/imports/watch', { signal }),
    refetchInterval: 5000,
  })
}

export function useImports() {
  return useQuery({
    queryKey: ['imports', 'all'],
    queryFn: ({ signal }) => api.get<Page<Import>>('/imports', { signal }),
  })
}

export function isOver(one: Import): boolean {
  return one.state === 'finished' || one.state === 'failed'
}

/** Fetch an import, polling until it is complete. */
export function useImport(id: string | undefined) {
  const client = useQueryClient()
  return useQuery({
    queryKey: ['imports', 'one', id],
    enabled: id !== undefined,
    queryFn: async ({ signal }) => {
      const found = await api.get<Import>(`/imports/${id}`, { signal })
      if (isOver(found)) {
        void client.invalidateQueries({ queryKey: ['imports', 'found'] })
        void client.invalidateQueries({ queryKey: ['conversations'] })
      }
      return found
    },
    refetchInterval: ({ state }) => (state.data && isOver(state.data) ? false : 500),
  })
}

/** Import a file, or everything found on the machine. */
export function useStartImport() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (file: File | null) =>
      file
        ? api.post<Import>('/imports', file, {
            query: { name: file.name },
            headers: { 'content-type': 'application/octet-stream' },
          })
        : api.post<Import>('/imports', { all: true }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['imports', 'all'] }),
    onError: (error) => notify(error instanceof Error ? error.message : String(error)),
  })
}
