import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

export type Project = components['schemas']['ProjectOut']

type Removed = components['schemas']['ProjectRemoved']

/** The fields for creating or changing a project. An empty root removes the folder. */
export type ProjectFields = Required<Pick<Project, 'name' | 'description' | 'context' | 'rules'>> & {
  root_path: string
}

const NONE: readonly Project[] = []

/** Return all projects. */
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

/** Create a project, or change the one with the given id. */
export function useProjectSave() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ id, fields }: { id: string | null; fields: ProjectFields }) =>
      id === null
        ? api.post<Project>('/projects', { ...fields, root_path: fields.root_path || null })
        : api.patch<Project>(`/projects/${encodeURIComponent(id)}`, fields),
    onSettled: () => client.invalidateQueries({ queryKey: ['projects'] }),
  })
}

/** Delete the project with the given id. Its conversations move to the default project. */
export function useProjectDelete() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (id: string) => api.delete<Removed>(`/projects/${encodeURIComponent(id)}`),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: ['projects'] }),
        client.invalidateQueries({ queryKey: ['conversations'] }),
      ]),
  })
}
