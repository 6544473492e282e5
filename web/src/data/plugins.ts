import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

export type Plugin = components['schemas']['PluginOut']

export function usePlugins() {
  return useQuery({
    queryKey: ['plugins'],
    queryFn: ({ signal }) => api.get<Page<Plugin>>('/plugins', { signal }),
  })
}

export function usePluginActions(name: string) {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['plugins'] })
  return {
    change: useMutation({
      mutationFn: (enabled: boolean) => api.patch<Plugin>(`/plugins/${name}`, { enabled }),
      onSettled,
    }),
  }
}
