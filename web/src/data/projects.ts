import { useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { Page } from '@/api/types'

export interface Project {
  id: string
  name: string
}

/** Every project that conversations may lie in. */
export function useProjects(): readonly Project[] {
  const { data } = useQuery({
    queryKey: ['projects'],
    queryFn: ({ signal }) => api.get<Page<Project>>('/projects', { query: { limit: 200 }, signal }),
    staleTime: 60_000,
  })
  return data?.data ?? []
}
