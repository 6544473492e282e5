import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, tagged, unlessChanged } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'
import { pause } from '@/data/polling'

export type McpServer = components['schemas']['McpServerOut']
export type McpTool = components['schemas']['McpToolOut']
export type McpDefinition = components['schemas']['McpDefinitionOut']
export type McpFields = Partial<components['schemas']['McpDefinitionIn']>
export type McpResource = components['schemas']['McpResourceOut']

const POLL = 1_000

export const mcpQuery = queryOptions({
  queryKey: ['mcp'],
  queryFn: ({ signal }) => api.get<Page<McpServer>>('/mcp', { signal }),
})

/** The query for the resources and templates of a server. It connects to the server. */
export function resourcesQuery(name: string) {
  return queryOptions({
    queryKey: ['mcp', name, 'resources'],
    queryFn: ({ signal }) => api.get<Page<McpResource>>(`/mcp/${name}/resources`, { signal }),
    retry: false,
  })
}

/** Fetch the configured servers, polling while a person signs in at one of them. */
export function useMcpServers() {
  return useQuery({
    ...mcpQuery,
    refetchInterval: ({ state }) =>
      state.data?.data.some((server) => server.login.state === 'pending') ? pause(POLL) : false,
  })
}

/** Return how a prompt mentions a resource; null if it can't. */
export function referenceTo(server: string, uri: string): string | null {
  if (/["\n]/.test(uri)) return null
  const mention = `${server}:${uri}`
  return /[\s'`@]|[.,;:!?*)\]}]$/.test(uri) ? `@"${mention}"` : `@${mention}`
}

/** Fetch the definition of a server in the configuration, with its ETag. An empty name fetches nothing. */
export function useMcpDefinition(name: string) {
  return useQuery({
    queryKey: ['mcp', name, 'definition'],
    queryFn: ({ signal }) => tagged<McpDefinition>(`/mcp/${name}`, { signal }),
    enabled: name !== '',
    staleTime: 0,
    gcTime: 0,
  })
}

/** Test, add, change and remove the definition of a server in the configuration. A test starts the server. */
export function useMcpDefinitionActions() {
  const client = useQueryClient()
  const onSuccess = () => void client.invalidateQueries({ queryKey: ['mcp'] })
  return {
    test: useMutation({
      mutationFn: ({ name, fields }: { name: string; fields: McpFields }) =>
        api.post<components['schemas']['McpTrialOut']>(`/mcp/${name}/test`, fields),
    }),
    add: useMutation({
      mutationFn: ({ name, fields }: { name: string; fields: McpFields }) =>
        api.post<McpServer>('/mcp', { name, ...fields }),
      onSuccess,
    }),
    change: useMutation({
      mutationFn: ({ name, fields, etag }: { name: string; fields: McpFields; etag: string }) =>
        unlessChanged(etag, (headers) => api.put<McpServer>(`/mcp/${name}`, fields, { headers })),
      onSuccess,
    }),
    remove: useMutation({ mutationFn: (name: string) => api.delete<void>(`/mcp/${name}`), onSuccess }),
  }
}

/** Return the words as one line that a POSIX shell splits into exactly these words. */
export function commandLine(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(' ')
}

export function useMcpActions(name: string) {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['mcp'] })
  return {
    change: useMutation({
      mutationFn: (enabled: boolean) => api.patch<McpServer>(`/mcp/${name}`, { enabled }),
      onSettled,
    }),
    connect: useMutation({ mutationFn: () => api.post<McpServer>(`/mcp/${name}/connect`, {}), onSettled }),
    signIn: useMutation({ mutationFn: () => api.post<McpServer>(`/mcp/${name}/login`, {}), onSettled }),
    signOut: useMutation({ mutationFn: () => api.delete<McpServer>(`/mcp/${name}/login`), onSettled }),
    accept: useMutation({
      mutationFn: (digests: readonly string[]) => api.post<McpServer>(`/mcp/${name}/accept`, { digests }),
      onSettled,
    }),
  }
}
