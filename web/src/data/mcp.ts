import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

export type McpServer = components['schemas']['McpServerOut']
export type McpTool = components['schemas']['McpToolOut']

export function useMcpServers() {
  return useQuery({
    queryKey: ['mcp'],
    queryFn: ({ signal }) => api.get<Page<McpServer>>('/mcp', { signal }),
  })
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
    accept: useMutation({
      mutationFn: (digests: readonly string[]) => api.post<McpServer>(`/mcp/${name}/accept`, { digests }),
      onSettled,
    }),
  }
}
