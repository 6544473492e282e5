import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, tagged, unlessChanged } from '@/api/client'
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Command = Schemas['CommandOut']
export type CommandText = Schemas['CommandTextOut']
export type CommandFields = Schemas['CommandTextIn']

const at = (name: string) => `/commands/${encodeURIComponent(name)}`

/** Fetch all commands, with those of a project if one is named. */
export function useCommandList(project: string) {
  return useQuery({
    queryKey: ['commands', project],
    queryFn: ({ signal }) => api.get<Schemas['CommandsOut']>('/commands', { query: { project }, signal }),
    placeholderData: keepPreviousData,
  })
}

/** Fetch a custom command with the ETag of its file. An empty name fetches nothing. */
export function useCommandText(name: string, project: string) {
  return useQuery({
    queryKey: ['commands', project, name],
    queryFn: ({ signal }) => tagged<CommandText>(at(name), { query: { project }, signal }),
    enabled: name !== '',
    staleTime: 0,
    gcTime: 0,
  })
}

/** Create, change and delete commands that are files in moot's home folder. */
export function useCommandActions() {
  const client = useQueryClient()
  const onSuccess = () => void client.invalidateQueries({ queryKey: ['commands'] })
  return {
    create: useMutation({
      mutationFn: (body: CommandFields & { name: string }) => api.post<CommandText>('/commands', body),
      onSuccess,
    }),
    change: useMutation({
      mutationFn: ({ name, fields, etag }: { name: string; fields: CommandFields; etag: string }) =>
        unlessChanged(etag, (headers) => api.patch<CommandText>(at(name), fields, { headers })),
      onSuccess,
    }),
    remove: useMutation({ mutationFn: (name: string) => api.delete<void>(at(name)), onSuccess }),
  }
}
