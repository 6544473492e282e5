import { type InfiniteData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef } from 'react'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import type { Conversation, Page, Run, RunStatus } from '@/api/types'
import { pause } from '@/data/polling'
import { text } from '@/text'
import { timeOf } from '@/ui/format'
import { notify, notifyError } from '@/ui/toasts'

export type Shelf = 'active' | 'archived' | 'deleted'

/** A filter of the list. Empty texts mean all. */
export interface Filter {
  shelf: Shelf
  /** The project's id. */
  project: string
  agent: string
  model: string
  /** The name of another machine, or `local` for this one. */
  host: string
  tag: string
  /** First and last day of the period in which a conversation was active, as `YYYY-MM-DD` in local time. */
  from: string
  to: string
}

export type ListChoices = components['schemas']['ListChoicesOut']

/** Fetch the values by which the list can be filtered. */
export function useListChoices() {
  return useQuery({
    queryKey: ['conversations', 'choices'],
    queryFn: ({ signal }) => api.get<ListChoices>('/choices', { signal }),
    staleTime: 30_000,
  })
}

type Pages = InfiniteData<Page<Conversation>, string | null>

/**
 * Fetch the conversations of a filter page by page: pinned ones, then others, latest activity first. `called` selects or excludes those that programs created by
 * calling `/v1`.
 */
export function useConversations(
  filter: Filter,
  { called, enabled = true }: { called?: boolean; enabled?: boolean } = {},
) {
  return useInfiniteQuery({
    enabled,
    queryKey: ['conversations', 'list', filter, called ?? null],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<Conversation>>('/conversations', {
        query: {
          limit: 50,
          cursor: pageParam,
          project: filter.project,
          agent: filter.agent,
          model: filter.model,
          host: filter.host,
          tag: filter.tag,
          pinned_first: true,
          since: timeOf(filter.from),
          until: timeOf(filter.to, 1),
          called,
          archived: filter.shelf === 'archived' || undefined,
          deleted: filter.shelf === 'deleted' || undefined,
        },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  })
}

/** Fetch the newest runs that failed or were interrupted. */
export function useFailures() {
  return useQuery({
    queryKey: ['runs', 'failures'],
    queryFn: async ({ signal }) =>
      (await api.get<Page<Run>>('/runs', { query: { status: ['failed', 'interrupted'], limit: 6 }, signal })).data,
    staleTime: 10_000,
  })
}

/** ms between fetches of the live runs while the page is hidden, if it is to notify the user. */
const HIDDEN = 10_000

/** Fetch the runs that have not ended every two seconds while the page is visible. With `hidden`, also fetch them while it is hidden. */
export function useLiveRuns(hidden = false): readonly LiveRun[] | undefined {
  const { data } = useQuery({
    queryKey: ['runs', 'live'],
    queryFn: ({ signal }) => api.get<Page<LiveRun>>('/runs', { query: { live: true, limit: 200 }, signal }),
    refetchInterval: () => pause(document.visibilityState === 'hidden' ? HIDDEN : 2_000),
    refetchIntervalInBackground: hidden,
  })
  return data?.data
}

/** Return the status of live runs by conversation. */
export function useLive(): ReadonlyMap<string, RunStatus> {
  const client = useQueryClient()
  const runs = useLiveRuns()
  const live = useMemo(() => statusesOf(runs ?? []), [runs])
  const statuses = JSON.stringify([...live, ...waitsOf(runs ?? [])])
  const before = useRef(statuses)
  useEffect(() => {
    if (before.current === statuses) return
    before.current = statuses // a run started, paused or ended: titles, order and the inbox may have changed
    void client.invalidateQueries({ queryKey: ['conversations', 'list'] })
    void client.invalidateQueries({ queryKey: ['conversations', 'choices'] })
    void client.invalidateQueries({ queryKey: ['approvals'] })
    void client.invalidateQueries({ queryKey: ['cron'] })
  }, [statuses, client])
  return live
}

export type LiveRun = Pick<Run, 'id' | 'conversation' | 'status' | 'awaits' | 'parent_run' | 'last_seq'>

/** Return the waiting runs with their last events. The event shows if a run asks for something new. */
export function waitsOf(runs: readonly LiveRun[]): [string, number][] {
  return runs.filter(({ status }) => status === 'waiting').map(({ id, last_seq }) => [id, last_seq])
}

/**
 * Return the status to show for each conversation: that of its started run, or else of its queued run. A run that waits for its sub-agents
 * is shown as running. If a sub-agent needs a person, it and all conversations above it are shown as waiting.
 */
export function statusesOf(runs: readonly LiveRun[]): Map<string, RunStatus> {
  const byId = new Map(runs.map((run) => [run.id, run]))
  const goesOn = ({ status, awaits }: LiveRun) => status === 'waiting' && (awaits === 'run' || awaits === 'time')
  const started = runs.filter(({ status }) => status !== 'queued')
  const found = new Map<string, RunStatus>(
    [...runs, ...started].map((run) => [run.conversation, goesOn(run) ? 'running' : run.status]),
  )
  for (const run of runs) {
    if (run.status !== 'waiting' || goesOn(run)) continue
    for (let above = byId.get(run.parent_run ?? ''); above; above = byId.get(above.parent_run ?? ''))
      found.set(above.conversation, 'waiting')
  }
  return found
}

/** The actions on a conversation. Each shows a notification, with undo where possible. */
export function useConversationActions() {
  const client = useQueryClient()
  // not awaited: the notification with Undo must not wait until the lists are fetched again
  const refresh = () => void client.invalidateQueries({ queryKey: ['conversations'] })

  const change = useMutation({
    mutationFn: ({ id, ...changes }: { id: string; title?: string; archived?: boolean; pinned?: boolean }) =>
      api.patch<Conversation>(`/conversations/${id}`, changes),
    onMutate: ({ id, title }) => {
      if (title === undefined) return
      client.setQueriesData<Pages>(
        { queryKey: ['conversations', 'list'] },
        (known) => known && renamed(known, id, title),
      )
    },
    onError: notifyError,
    onSettled: refresh,
  })
  const remove = useMutation({
    mutationFn: (id: string) => api.delete(`/conversations/${id}`),
    onError: notifyError,
    onSettled: refresh,
  })
  const purge = useMutation({
    mutationFn: (id: string) => api.delete(`/conversations/${id}?purge=true`),
    onError: notifyError,
    onSettled: refresh,
  })
  const restore = useMutation({
    mutationFn: (id: string) => api.post<Conversation>(`/conversations/${id}/restore`),
    onError: notifyError,
    onSettled: refresh,
  })

  return {
    rename: (id: string, title: string) => change.mutate({ id, title }),
    archive: (id: string, archived: boolean) =>
      change.mutate(
        { id, archived },
        {
          onSuccess: () =>
            notify(archived ? text.list.archived : text.list.unarchived, {
              action: { label: text.common.undo, act: () => change.mutate({ id, archived: !archived }) },
            }),
        },
      ),
    pin: (id: string, pinned: boolean) =>
      change.mutate(
        { id, pinned },
        {
          onSuccess: () =>
            notify(pinned ? text.list.pinned : text.list.unpinned, {
              action: { label: text.common.undo, act: () => change.mutate({ id, pinned: !pinned }) },
            }),
        },
      ),
    remove: (id: string) =>
      remove.mutate(id, {
        onSuccess: () =>
          notify(text.list.deleted, { action: { label: text.common.undo, act: () => restore.mutate(id) } }),
      }),
    purge: (id: string) => purge.mutate(id, { onSuccess: () => notify(text.list.purged) }),
    restore: (id: string) => restore.mutate(id, { onSuccess: () => notify(text.list.restored) }),
  }
}

/** The actions on several conversations. Each shows one notification with undo, and the first error if some failed. */
export function useBulkActions() {
  const client = useQueryClient()
  type Change = (conversation: Conversation) => Promise<unknown>
  async function each(all: readonly Conversation[], change: Change): Promise<Conversation[]> {
    const results = await Promise.allSettled(all.map(change))
    void client.invalidateQueries({ queryKey: ['conversations'] })
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    const [first] = reasons
    if (reasons.length === 1) notifyError(first)
    else if (reasons.length) {
      const reason = first instanceof Error ? first.message : String(first)
      notifyError(new Error(text.selection.failed(reasons.length, reason)))
    }
    return all.filter((_, at) => results[at]?.status === 'fulfilled')
  }
  async function run(all: readonly Conversation[], words: (count: number) => string, change: Change, back: Change) {
    const done = await each(all, change)
    if (!done.length) return
    notify(words(done.length), { action: { label: text.common.undo, act: () => void each(done, back) } })
  }
  const patch =
    (changes: { archived?: boolean; pinned?: boolean; project?: string; tags?: readonly string[] }) =>
    (one: Conversation) =>
      api.patch(`/conversations/${one.id}`, changes)
  const remove: Change = ({ id }) => api.delete(`/conversations/${id}`)
  const restore: Change = ({ id }) => api.post(`/conversations/${id}/restore`)
  const words = text.selection
  return {
    archive: (all: readonly Conversation[], archived: boolean) =>
      run(all, archived ? words.archived : words.unarchived, patch({ archived }), patch({ archived: !archived })),
    pin: (all: readonly Conversation[], pinned: boolean) =>
      run(all, pinned ? words.pinned : words.unpinned, patch({ pinned }), (one) =>
        patch({ pinned: one.pinned_at !== null })(one),
      ),
    /** Add tags to each conversation, and remove others. */
    tag: (all: readonly Conversation[], add: readonly string[], remove: readonly string[]) =>
      run(
        all,
        words.tagged,
        (one) => patch({ tags: [...new Set([...one.tags, ...add])].filter((tag) => !remove.includes(tag)) })(one),
        (one) => patch({ tags: one.tags })(one),
      ),
    remove: (all: readonly Conversation[]) => run(all, words.deleted, remove, restore),
    restore: (all: readonly Conversation[]) => run(all, words.restored, restore, remove),
    move: (all: readonly Conversation[], to: { id: string; name: string }) =>
      run(
        all,
        (count) => words.moved(count, to.name),
        patch({ project: to.id }),
        (one) => patch({ project: one.project })(one),
      ),
  }
}

export type ConversationActions = ReturnType<typeof useConversationActions>

function renamed(known: Pages, id: string, title: string): Pages {
  const pages = known.pages.map((page) => ({
    ...page,
    data: page.data.map((one) => (one.id === id ? { ...one, title } : one)),
  }))
  return { ...known, pages }
}
