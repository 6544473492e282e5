import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

type Schemas = components['schemas']

export type Skill = Schemas['SkillOut']
export type SkillDetail = Schemas['SkillDetailOut']
export type Finding = Schemas['SkillFindingOut']
export type Candidate = Schemas['SkillCandidateOut']
export type Source = Schemas['SkillSourceIn']

const at = (name: string) => `/skills/${encodeURIComponent(name)}`

/** Fetch the skills, with those of a project if one is named. */
export function useSkills(project: string) {
  return useQuery({
    queryKey: ['skills', project],
    queryFn: ({ signal }) => api.get<Page<Skill>>('/skills', { query: { project }, signal }),
    placeholderData: keepPreviousData,
  })
}

export function useSkill(name: string, project: string) {
  return useQuery({
    queryKey: ['skills', project, name],
    queryFn: ({ signal }) => api.get<SkillDetail>(at(name), { query: { project }, signal }),
    staleTime: 0,
  })
}

/** Fetch the skills and agents of the configured indexes. */
export function useIndexEntries() {
  return useQuery({
    queryKey: ['skill-indexes'],
    queryFn: ({ signal }) => api.get<Page<Schemas['IndexEntryOut']>>('/skill-indexes', { signal }),
  })
}

/** Change, accept, install and remove skills. With a project, names also mean its skills. */
export function useSkillActions(project = '') {
  const client = useQueryClient()
  const onSuccess = () => client.invalidateQueries({ queryKey: ['skills'] })
  return {
    change: useMutation({
      mutationFn: ({ name, ...changes }: { name: string } & Schemas['SkillIn']) =>
        api.patch<SkillDetail>(at(name), changes, { query: { project } }),
      onSuccess,
    }),
    accept: useMutation({
      mutationFn: ({ name, digest }: { name: string; digest: string }) =>
        api.post<SkillDetail>(`${at(name)}/accept`, { digest }, { query: { project } }),
      onSuccess,
    }),
    create: useMutation({
      mutationFn: (skill: Schemas['NewSkillIn']) => api.post<SkillDetail>('/skills/new', skill),
      onSuccess,
    }),
    rewrite: useMutation({
      mutationFn: ({ name, ...fields }: { name: string } & Schemas['SkillTextIn']) =>
        api.put<SkillDetail>(`${at(name)}/text`, fields),
      onSuccess,
    }),
    preview: useMutation({ mutationFn: (source: Source) => api.post<Page<Candidate>>('/skills/preview', source) }),
    install: useMutation({
      mutationFn: (wanted: Schemas['SkillInstallIn']) => api.post<SkillDetail>('/skills', wanted),
      onSuccess,
    }),
    remove: useMutation({ mutationFn: (name: string) => api.delete<Skill>(at(name)), onSuccess }),
  }
}
