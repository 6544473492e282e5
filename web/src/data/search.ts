import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { Page } from '@/api/types'

export interface Hit {
  /** Of the message. */
  id: string
  conversation: string
  title: string
  role: string
  at: number
  /** With U+0002 and U+0003 around what matched. */
  snippet: string
}

interface Found extends Page<Hit> {
  index: { done: number; total: number }
}

/** Messages in which all the words occur, newest first; nothing is asked for an empty query. */
export function useSearch(query: string) {
  return useQuery({
    queryKey: ['search', query],
    queryFn: ({ signal }) => api.get<Found>('/search', { query: { q: query, limit: 20 }, signal }),
    enabled: query.trim() !== '',
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  })
}
