import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, send } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

export type Task = components['schemas']['TaskOut']
export type TaskStatus = Task['status']
export type TaskComment = components['schemas']['TaskCommentOut']
export type TaskFields = components['schemas']['TaskChangeIn']
type TaskHistory = components['schemas']['TaskHistoryOut']

/** All statuses, in the order of the list. */
export const STATUSES: readonly TaskStatus[] = ['backlog', 'in_progress', 'blocked', 'in_review', 'done', 'archived']

/** Maximum number of tasks to show. */
export const MOST = 200

const pathOf = (project: string, task?: number) =>
  `/projects/${encodeURIComponent(project)}/tasks${task === undefined ? '' : `/${task}`}`

/** Return the tasks of a project, with archived ones on request. */
export function useTasks(project: string | undefined, archived: boolean) {
  const status = archived ? STATUSES : undefined
  return useQuery({
    queryKey: ['tasks', project, 'list', archived],
    queryFn: ({ signal }) => api.get<Page<Task>>(pathOf(project ?? ''), { query: { limit: MOST, status }, signal }),
    enabled: project !== undefined,
    refetchInterval: 5_000, // agents and the command line change tasks too
  })
}

/** Return a task, its ETag, its newest comments and its history. */
export function useTask(project: string, number: number) {
  return useQuery({
    queryKey: ['tasks', project, number],
    queryFn: async ({ signal }) => {
      const path = pathOf(project, number)
      const [response, comments, history] = await Promise.all([
        send('GET', path, undefined, { signal }),
        api.get<Page<TaskComment>>(`${path}/comments`, { query: { limit: MOST }, signal }),
        api.get<TaskHistory>(`${path}/history`, { query: { limit: 20 }, signal }),
      ])
      const task = (await response.json()) as Task
      return { task, etag: response.headers.get('etag') ?? '', comments: comments.data.toReversed(), history }
    },
  })
}

export interface Change {
  number: number
  fields: TaskFields
  /** If set, the server rejects the change unless the task still has this ETag. */
  etag?: string
}

export function useTaskActions(project: string) {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['tasks', project] })
  return {
    add: useMutation({
      mutationFn: (fields: TaskFields) => api.post<Task>(pathOf(project), fields),
      onSettled,
    }),
    change: useMutation({
      mutationFn: ({ number, fields, etag }: Change) =>
        api.patch<Task>(pathOf(project, number), fields, { headers: etag ? { 'if-match': etag } : {} }),
      onSettled,
    }),
    comment: useMutation({
      mutationFn: ({ number, text }: { number: number; text: string }) =>
        api.post<TaskComment>(`${pathOf(project, number)}/comments`, { text }),
      onSettled,
    }),
    remove: useMutation({
      mutationFn: (number: number) => api.delete<Task>(pathOf(project, number)),
      onSettled: () => client.invalidateQueries({ queryKey: ['tasks', project, 'list'] }), // only the list: the task no longer exists
    }),
  }
}
