import { type InfiniteData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef } from 'react'
import { api } from '@/api/client'
import type { Conversation, Page, RunStatus } from '@/api/types'
import { say, sayProblem } from '@/ui/toasts'

export type Shelf = 'active' | 'archived' | 'deleted'

export interface Filter {
  shelf: Shelf
  /** Id of a project; empty = all. */
  project: string
}

type Pages = InfiniteData<Page<Conversation>, string | null>

/** The conversations of a shelf, newest activity first, page by page. */
export function useConversations(filter: Filter) {
  return useInfiniteQuery({
    queryKey: ['conversations', 'list', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<Conversation>>('/conversations', {
        query: {
          limit: 50,
          cursor: pageParam,
          project: filter.project,
          archived: filter.shelf === 'archived' || undefined,
          deleted: filter.shelf === 'deleted' || undefined,
        },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  })
}

/** Conversation → state of its live run, looked at every two seconds while somebody looks at the page. */
export function useLive(): ReadonlyMap<string, RunStatus> {
  const client = useQueryClient()
  const { data } = useQuery({
    queryKey: ['runs', 'live'],
    queryFn: ({ signal }) =>
      api.get<Page<{ conversation: string; status: RunStatus }>>('/runs', {
        query: { live: true, limit: 200 },
        signal,
      }),
    refetchInterval: 2_000,
  })
  const live = useMemo(() => {
    const started = (data?.data ?? []).filter((run) => run.status !== 'queued')
    return new Map([...(data?.data ?? []), ...started].map((run) => [run.conversation, run.status]))
  }, [data])
  const said = JSON.stringify([...live])
  const before = useRef(said)
  useEffect(() => {
    if (before.current === said) return
    before.current = said // something began, waits or ended: titles, order and the inbox may have changed with it
    void client.invalidateQueries({ queryKey: ['conversations', 'list'] })
    void client.invalidateQueries({ queryKey: ['approvals'] })
  }, [said, client])
  return live
}

/** What a person may do to a conversation; each says what it did and how to undo it. */
export function useActs() {
  const client = useQueryClient()
  const refresh = () => client.invalidateQueries({ queryKey: ['conversations'] })

  const change = useMutation({
    mutationFn: ({ id, ...changes }: { id: string; title?: string; archived?: boolean }) =>
      api.patch<Conversation>(`/conversations/${id}`, changes),
    onMutate: ({ id, title }) => {
      if (title === undefined) return
      client.setQueriesData<Pages>(
        { queryKey: ['conversations', 'list'] },
        (known) => known && renamed(known, id, title),
      )
    },
    onError: sayProblem,
    onSettled: refresh,
  })
  const remove = useMutation({
    mutationFn: (id: string) => api.delete(`/conversations/${id}`),
    onError: sayProblem,
    onSettled: refresh,
  })
  const purge = useMutation({
    mutationFn: (id: string) => api.delete(`/conversations/${id}?purge=true`),
    onError: sayProblem,
    onSettled: refresh,
  })
  const restore = useMutation({
    mutationFn: (id: string) => api.post<Conversation>(`/conversations/${id}/restore`),
    onError: sayProblem,
    onSettled: refresh,
  })

  return {
    rename: (id: string, title: string) => change.mutate({ id, title }),
    archive: (id: string, archived: boolean) =>
      change.mutate(
        { id, archived },
        {
          onSuccess: () =>
            say(archived ? 'Archived' : 'Back in the list', {
              action: { label: 'Undo', act: () => change.mutate({ id, archived: !archived }) },
            }),
        },
      ),
    remove: (id: string) =>
      remove.mutate(id, {
        onSuccess: () => say('Deleted', { action: { label: 'Undo', act: () => restore.mutate(id) } }),
      }),
    purge: (id: string) => purge.mutate(id, { onSuccess: () => say('Gone for good') }),
    restore: (id: string) => restore.mutate(id, { onSuccess: () => say('Restored') }),
  }
}

export type Acts = ReturnType<typeof useActs>

function renamed(known: Pages, id: string, title: string): Pages {
  const pages = known.pages.map((page) => ({
    ...page,
    data: page.data.map((one) => (one.id === id ? { ...one, title } : one)),
  }))
  return { ...known, pages }
}
