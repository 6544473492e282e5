import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api } from '@/api/client'
import type { Page } from '@/api/types'

/** A summary that models get in place of the messages up to `through`. */
export interface Compaction {
  through: string
  summary: string
  plan: string
}

const path = (conversation: string) => `/conversations/${encodeURIComponent(conversation)}/compactions`

/** Fetch the summaries of a conversation, and fetch them again when its messages may have changed. Nothing is fetched before it exists. */
export function useCompactions(conversation: string, exists: boolean, nodes: readonly unknown[]) {
  const { data, refetch } = useQuery({
    queryKey: ['compactions', conversation],
    queryFn: ({ signal }) => api.get<Page<Compaction>>(path(conversation), { signal }),
    enabled: exists,
    retry: false,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tree is loaded again after every change
  useEffect(() => {
    if (exists) void refetch()
  }, [exists, nodes, refetch])
  return data?.data ?? []
}

/** Return functions that change or withdraw a summary. */
export function useCompactionChanges(conversation: string) {
  const client = useQueryClient()
  const changed = () => client.invalidateQueries({ queryKey: ['compactions', conversation] })
  const one = (through: string) => `${path(conversation)}/${encodeURIComponent(through)}`
  return {
    change: (through: string, summary: string) => api.patch(one(through), { summary }).then(changed),
    withdraw: (through: string) => api.delete(one(through)).then(changed),
  }
}
