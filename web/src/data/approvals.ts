import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { api } from '@/api/client'
import { approvals } from '@/api/conversations'
import type { components } from '@/api/schema'
import type { Answer, Approval, Conversation } from '@/api/types'
import { pause } from '@/data/polling'
import { text } from '@/text'

/** ms between fetches of open approvals while the inbox is shown. */
const SHOWN = 5_000
/** ms between fetches where events or the list of live runs also cause a fetch. */
const FOLLOWED = 20_000
/** ms between fetches while an approval that a message asks for is missing in the list. */
const MISSING = 1_000
/** ms after which a missing approval counts as answered in another tab or program. */
const PATIENCE = 30_000

/** Fetch the open approvals of all conversations. */
export function useApprovals(every = SHOWN) {
  return useQuery({
    queryKey: ['approvals', 'open'],
    queryFn: ({ signal }) => approvals.open(null, signal),
    refetchInterval: () => pause(every),
  })
}

/** Return the number of open approvals, 0 while loading. */
export function useOpenCount(): number {
  return useApprovals(FOLLOWED).data?.length ?? 0
}

/**
 * Fetch an approval that a message of the conversation asks for, until it is found. Return undefined if it is not open. `seq` is the number
 * of the conversation's last known event. With each new event, the list is fetched again, because the approval may have been answered.
 */
export function useApproval(conversation: string, id: string, seq: number | null | undefined) {
  const isIt = (approval: Approval) => approval.id === id
  const since = useRef(Date.now())
  const { data, error, refetch } = useQuery({
    queryKey: ['approvals', 'of', conversation],
    queryFn: ({ signal }) => approvals.open(conversation, signal),
    refetchInterval: ({ state }) =>
      pause(state.data?.some(isIt) || Date.now() - since.current > PATIENCE ? FOLLOWED : MISSING),
    refetchOnMount: false,
    retry: false,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a list that was loaded before this approval was asked for lacks it
  useEffect(() => void refetch(), [id, seq, refetch])
  return { approval: data?.find(isIt), error, refetch }
}

export type Preview = components['schemas']['PreviewOut']

const FILE_TOOLS = new Set(['edit_file', 'write_file'])

/** Return true if a call changes a file, so that its change can be shown as a diff. */
export function changesFile({ tool }: Approval): boolean {
  return FILE_TOOLS.has(tool)
}

/** Fetch the change that a call would make to a file. Undefined until it is known, and for other calls. */
export function useCallPreview(approval: Approval): Preview | undefined {
  const { id } = approval
  const { data } = useQuery({
    enabled: changesFile(approval),
    queryKey: ['approvals', 'one', id],
    queryFn: ({ signal }) => api.get<{ preview: Preview }>(`/approvals/${encodeURIComponent(id)}`, { signal }),
    staleTime: 60_000,
  })
  return data?.preview
}

/** Submit an answer and refresh the open approvals, even if it was already answered in another tab or program. */
export function useAnswer() {
  const client = useQueryClient()
  return async (id: string, answer: Answer) => {
    try {
      await approvals.answer(id, answer)
      for (const list of ['open', 'of'])
        client.setQueriesData<Approval[]>({ queryKey: ['approvals', list] }, (open) =>
          open?.filter((one) => one.id !== id),
        )
    } finally {
      void client.invalidateQueries({ queryKey: ['approvals'] })
    }
  }
}

/** Return the title of a conversation. Empty while loading. */
export function useTitleOf(conversation: string): string {
  const { data } = useQuery({
    queryKey: ['conversations', 'one', conversation],
    queryFn: ({ signal }) => api.get<Conversation>(`/conversations/${conversation}`, { signal }),
  })
  return data ? data.title || text.common.untitled : ''
}
