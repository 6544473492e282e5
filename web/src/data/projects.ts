import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

export type Project = components['schemas']['ProjectOut']

/** What is said of a project to make or change it; an empty root takes it away. */
export type ProjectWish = Required<Pick<Project, 'name' | 'description' | 'context' | 'rules'>> & { root_path: string }

const NONE: readonly Project[] = []

/** Every project that conversations may lie in. */
export function useProjects(): readonly Project[] {
  return useProjectList().data?.data ?? NONE
}

export function useProjectList() {
  return useQuery({
    queryKey: ['projects'],
    queryFn: ({ signal }) => api.get<Page<Project>>('/projects', { query: { limit: 200 }, signal }),
    staleTime: 60_000,
  })
}

/** Makes a project, or changes the one with that id. */
export function useProjectSave() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ id, wish }: { id: string | null; wish: ProjectWish }) =>
      id === null
        ? api.post<Project>('/projects', { ...wish, root_path: wish.root_path || null })
        : api.patch<Project>(`/projects/${encodeURIComponent(id)}`, wish),
    onSettled: () => client.invalidateQueries({ queryKey: ['projects'] }),
  })
}
