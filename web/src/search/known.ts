import { useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { Page } from '@/api/types'
import { useProjects } from '@/data/projects'
import type { Stats } from '@/data/stats'

type Named = 'agent' | 'model'

/** Return suggested values for the operator at the end of the query: agents and models in use first, and project names. */
export function useKnown(query: string): Record<string, readonly string[]> {
  const name = /(?:^|\s)-?(agent|model|project):[^\s]*$/i.exec(query)?.[1]?.toLowerCase()
  const projects = useProjects().map((project) => project.name)
  const named = useQuery({
    queryKey: ['search', 'known', name],
    queryFn: ({ signal }) => namesOf(name as Named, signal),
    enabled: name === 'agent' || name === 'model',
    staleTime: 60_000,
  })
  return { project: projects, ...(name && name !== 'project' ? { [name]: named.data ?? [] } : {}) }
}

async function namesOf(name: Named, signal: AbortSignal): Promise<string[]> {
  const [stats, all] = await Promise.all([
    api.get<Stats>('/stats', { query: { since: 0 }, signal }),
    api.get<Page<{ id: string }>>(`/${name}s`, { query: { limit: 200 }, signal }),
  ])
  const answered = (name === 'agent' ? stats.agents : stats.models).map((group) => group.name)
  return [...new Set([...answered, ...all.data.map((one) => one.id)])].filter(Boolean)
}
