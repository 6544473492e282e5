import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { Page } from '@/api/types'

/** An export format. */
export interface ExportFormat {
  id: string
  words: string
  suffix: string
  kept: string[]
  approximated: string[]
  readable: boolean
  shareable: boolean
}

export function useExportFormats() {
  return useQuery({
    queryKey: ['exports'],
    queryFn: ({ signal }) => api.get<Page<ExportFormat>>('/exports', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export interface Redaction {
  kind: string
  where: string
  count: number
}

export interface Draft {
  title: string
  size: number
  digest: string
  left_out: Redaction[]
  page: string
}

/** Fetch a preview of the shared page, and the number of redacted items. */
export function useDraft(conversation: string, keep: readonly string[]) {
  return useQuery({
    queryKey: ['shares', 'draft', conversation, ...keep],
    queryFn: ({ signal }) => api.post<Draft>('/shares/preview', { conversation, keep }, { signal }),
    gcTime: 0,
    staleTime: 0,
  })
}

export interface Share {
  id: string
  conversation: string
  title: string
  size: number
  left_out: Redaction[]
  created_at: number
  expires_at: number
  revoked_at: number | null
}

export interface ShareMade extends Share {
  /** The link of the page, which the server returns only once. */
  url: string
  reach: 'machine' | 'network'
}

export function useShares() {
  return useQuery({
    queryKey: ['shares', 'all'],
    queryFn: ({ signal }) => api.get<Page<Share>>('/shares', { signal }),
  })
}

export function useShareActions() {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['shares', 'all'] })
  return {
    create: useMutation({
      mutationFn: (share: { conversation: string; keep: readonly string[]; expires_in: number; digest: string }) =>
        api.post<ShareMade>('/shares', share),
      onSettled,
    }),
    revoke: useMutation({ mutationFn: (id: string) => api.delete(`/shares/${id}`), onSettled }),
  }
}
